import COrchard
import Foundation
import Metal

/// The struct that the kernels of kernels/runtime/materialize.metal read, with the same fields as their `StridedCopy`.
struct StridedCopy {
    typealias Eight<Value> = (Value, Value, Value, Value, Value, Value, Value, Value)

    var shape: Eight<UInt64> = (1, 1, 1, 1, 1, 1, 1, 1)
    var sourceStrides: Eight<Int64> = (0, 0, 0, 0, 0, 0, 0, 0)
    var destinationStrides: Eight<Int64> = (0, 0, 0, 0, 0, 0, 0, 0)
    var sourceStart: UInt64 = 0
    var destinationStart: UInt64 = 0
    var count: UInt64 = 1
    var rank: UInt32 = 0
    var reserved: UInt32 = 0

    /// Drops dimensions of length 1, and merges adjacent dimensions that are contiguous in both operands, since the
    /// kernel divides once for each remaining dimension.
    init(shape: [UInt64], source: [Int64], destination: [Int64]) {
        var kept: [(size: UInt64, source: Int64, destination: Int64)] = []
        for (size, (from, to)) in zip(shape, zip(source, destination)) where size != 1 {
            if let outer = kept.last, outer.source == from &* Int64(size), outer.destination == to &* Int64(size) {
                kept[kept.count - 1] = (outer.size * size, from, to)
            } else {
                kept.append((size, from, to))
            }
        }
        count = shape.reduce(1, *)
        rank = UInt32(kept.count)
        withUnsafeMutableBytes(of: &self.shape) { $0.copyBytes(from: kept.map(\.size).bytes) }
        withUnsafeMutableBytes(of: &sourceStrides) { $0.copyBytes(from: kept.map(\.source).bytes) }
        withUnsafeMutableBytes(of: &destinationStrides) { $0.copyBytes(from: kept.map(\.destination).bytes) }
    }
}

extension StridedCopy {
    /// See `Work`.
    var work: UInt64 { count &* Work.leastOfAThread }
}

extension Array {
    fileprivate var bytes: [UInt8] { withUnsafeBytes(Array<UInt8>.init) }
}

/// The copy kernels, compiled when first needed.
final class CopyKernels: @unchecked Sendable {
    /// The number of threads in a row of the grid. An element's number may exceed 32 bits, but a coordinate of the grid
    /// may not.
    static let rowLength: UInt64 = 1 << 24
    static let threadgroupWidth = 256

    private let lock = NSLock()
    private var library: Library?
    private var pipelines: [Int: Pipeline] = [:]

    /// Compiles, so it must not be called under the context's lock.
    func pipeline(elementSize: Int, for context: Context) throws -> Pipeline {
        try lock.withLock {
            if let pipeline = pipelines[elementSize] { return pipeline }
            guard let source = context.materializeSource else {
                throw OrchardError(
                    ORCHARD_UNSUPPORTED,
                    "This copy needs a kernel, and the context was opened without materialize_source "
                        + "(the text of kernels/runtime/materialize.metal).")
            }
            let request = LibraryRequest(
                name: "kernels/runtime/materialize.metal", source: source, label: "materialize")
            library = try library ?? context.libraries.library(request, for: context)
            let made = try library!.pipelines.pipeline(
                PipelineRequest(function: "copy_strided_\(elementSize)"), of: library!)
            pipelines[elementSize] = made
            return made
        }
    }

    /// Breaks the reference cycle between the context and its pipelines.
    func removeAll() {
        lock.withLock {
            pipelines = [:]
            library = nil
        }
    }
}

extension Pipeline {
    /// Binds and dispatches a copy kernel; `bindSource` sets buffer 0.
    func encodeCopy(
        _ copy: StridedCopy, to destination: Use, on encoder: any MTLComputeCommandEncoder,
        bindSource: (any MTLComputeCommandEncoder) -> Void
    ) {
        encoder.setComputePipelineState(state)
        bindSource(encoder)
        encoder.setBuffer(destination.allocation.buffer, offset: destination.range.lowerBound, index: 1)
        withUnsafeBytes(of: copy) { encoder.setBytes($0.baseAddress!, length: $0.count, index: 2) }
        let width = min(copy.count, CopyKernels.rowLength)
        let rows = (copy.count + width - 1) / width
        encoder.dispatchThreads(
            MTLSize(width: Int(width), height: Int(rows), depth: 1),
            threadsPerThreadgroup: MTLSize(width: min(CopyKernels.threadgroupWidth, maxThreads), height: 1, depth: 1))
    }
}
