import COrchard
import Foundation
import Metal

/// A function constant from the caller: identified by name, or by index if the name is nil.
struct ConstantValue: Hashable {
    let name: String?
    let index: UInt32
    let type: UInt32
    let bytes: [UInt8]

    var description: String { name.map { "'\($0)'" } ?? "\(index)" }
}

/// An argument of a kernel.
struct KernelArgument {
    let name: String
    let index: Int
    let isBuffer: Bool
    let access: MTLBindingAccess
    let dataSize: Int
    let alignment: Int
    let dataType: MTLDataType
    let isUsed: Bool

    init?(_ binding: any MTLBinding) {
        name = binding.name
        index = binding.index
        access = binding.access
        isUsed = binding.isUsed
        switch binding.type {
        case .buffer:
            let buffer = binding as? any MTLBufferBinding
            (isBuffer, dataSize, alignment) = (true, buffer?.bufferDataSize ?? 0, max(buffer?.bufferAlignment ?? 1, 1))
            dataType = buffer?.bufferDataType ?? .none
        case .threadgroupMemory:
            let memory = binding as? any MTLThreadgroupBinding
            (isBuffer, dataSize, alignment) = (
                false, memory?.threadgroupMemoryDataSize ?? 0, max(memory?.threadgroupMemoryAlignment ?? 1, 1)
            )
            dataType = .none
        default:
            return nil
        }
    }

    var json: [String: Any] {
        let accessName = access == .readOnly ? "read" : access == .writeOnly ? "write" : "readwrite"
        return [
            "name": name, "index": index, "kind": isBuffer ? "buffer" : "threadgroup", "access": accessName,
            "dataSize": dataSize, "alignment": alignment, "dataType": dataType.rawValue, "used": isUsed,
        ]
    }
}

/// A kernel with its constants, ready to run.
final class Pipeline: HandleObject, @unchecked Sendable {
    override class var kind: HandleKind { .pipeline }
    override var context: Context { library.owner }

    let library: Library
    let function: String
    let state: any MTLComputePipelineState
    let arguments: [KernelArgument]
    let maxThreads: Int
    let staticThreadgroupBytes: Int

    init(_ library: Library, _ function: String, _ state: any MTLComputePipelineState, _ arguments: [KernelArgument]) {
        self.library = library
        self.function = function
        self.state = state
        self.arguments = arguments
        maxThreads = state.maxTotalThreadsPerThreadgroup
        staticThreadgroupBytes = state.staticThreadgroupMemoryLength
    }

    var json: String {
        JSON.text([
            "function": function, "maxTotalThreads": maxThreads, "threadExecutionWidth": state.threadExecutionWidth,
            "staticThreadgroupBytes": staticThreadgroupBytes, "bindings": arguments.map(\.json),
        ])
    }
}

struct PipelineRequest {
    var function: String
    var constants: [ConstantValue] = []
    var maxThreads: UInt32 = 0
    var label: String?
}

/// The pipelines of a library, by kernel, constants and threads, while they are in use. Only one thread compiles at a
/// time.
final class PipelineCache: @unchecked Sendable {
    private struct Key: Hashable {
        let function: String
        let constants: [ConstantValue]
        let maxThreads: UInt32
    }
    private struct Weak { weak var pipeline: Pipeline? }

    private let lock = NSLock()
    private var known: [Key: Weak] = [:]

    /// A library's information about its functions is read under the lock under which pipelines are made.
    func locked<Result>(_ body: () -> Result) -> Result { lock.withLock(body) }

    /// Returns nil if another thread is still compiling at the deadline.
    func locked<Result>(until deadline: Date?, _ body: () -> Result) -> Result? {
        guard let deadline else { return locked(body) }
        guard lock.lock(before: deadline) else { return nil }
        defer { lock.unlock() }
        return body()
    }

    func pipeline(_ request: PipelineRequest, of library: Library) throws -> Pipeline {
        let key = Key(function: request.function, constants: request.constants, maxThreads: request.maxThreads)
        return try lock.withLock {
            let context = library.owner
            if let pipeline = known[key]?.pipeline {
                try context.locked { context.statistics.values.pipeline_hits += 1 }
                return pipeline
            }
            let pipeline = try PipelineCompiler(library: library, request: request).compile()
            known = known.filter { $0.value.pipeline != nil }
            known[key] = Weak(pipeline: pipeline)
            return pipeline
        }
    }
}
