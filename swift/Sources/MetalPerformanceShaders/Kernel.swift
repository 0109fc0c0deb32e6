import Foundation
import Metal

/// Whether the device runs the kernels of this module. This is true for every device of this system.
public func MPSSupportsMTLDevice(_ device: (any MTLDevice)?) -> Bool { device != nil }

public struct MPSKernelOptions: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var skipAPIValidation: MPSKernelOptions { MPSKernelOptions(rawValue: 1) }
    public static var allowReducedPrecision: MPSKernelOptions { MPSKernelOptions(rawValue: 2) }
    public static var disableInternalTiling: MPSKernelOptions { MPSKernelOptions(rawValue: 4) }
    public static var insertDebugGroups: MPSKernelOptions { MPSKernelOptions(rawValue: 8) }
    public static var verbose: MPSKernelOptions { MPSKernelOptions(rawValue: 16) }
}

/// A kernel, which encodes its work to a command buffer. It computes in float32, and options have no effect.
public class MPSKernel: NSObject, NSCopying {
    public let device: any MTLDevice
    public var label: String?
    public var options: MPSKernelOptions = []

    public init(device: any MTLDevice) { self.device = device }

    public func copy(with zone: NSZone? = nil) -> Any { self }

    /// Encodes one thread for each element of a grid. `types` are names in the source for the types of the matrices.
    func dispatch<Parameters>(
        _ function: String, types: KeyValuePairs<String, MPSDataType>, to commandBuffer: any MTLCommandBuffer,
        buffers: [(any MTLBuffer, Int)], parameters: Parameters, threads: MTLSize
    ) {
        guard threads.width * threads.height * threads.depth > 0 else { return }
        guard let encoder = commandBuffer.makeComputeCommandEncoder() else {
            preconditionFailure("\(Self.self): the command buffer has no compute encoder.")
        }
        encoder.label = label ?? "\(Self.self)"
        let pipeline = Pipelines.shared.pipeline(function, types: types, owner: "\(Self.self)", on: device)
        encoder.setComputePipelineState(pipeline)
        for (index, (buffer, offset)) in buffers.enumerated() {
            encoder.setBuffer(buffer, offset: offset, index: index)
        }
        withUnsafeBytes(of: parameters) {
            encoder.setBytes($0.baseAddress!, length: $0.count, index: buffers.count)
        }
        let width = min(threads.width, pipeline.threadExecutionWidth)
        encoder.dispatchThreads(threads, threadsPerThreadgroup: MTLSizeMake(width, 1, 1))
        encoder.endEncoding()
    }

    func check(_ isValid: Bool, _ problem: @autoclosure () -> String) {
        precondition(isValid, "\(Self.self): \(problem())")
    }
}

/// The pipelines of this module's kernels, compiled when first used, by the types of their operands.
final class Pipelines: @unchecked Sendable {
    static let shared = Pipelines()
    private let lock = NSLock()
    private var known: [String: any MTLComputePipelineState] = [:]

    func pipeline(
        _ function: String, types: KeyValuePairs<String, MPSDataType>, owner: String, on device: any MTLDevice
    ) -> any MTLComputePipelineState {
        let definitions = types.map { name, type in
            guard let spelling = type.kernelName else {
                preconditionFailure(
                    "\(owner): a matrix has the data type \(String(type.rawValue, radix: 16)); "
                        + "expected float32 or float16.")
            }
            return "using \(name) = \(spelling);"
        }
        let source = definitions.joined(separator: "\n") + "\n" + kernelSources[function]!
        return pipeline(function, source: source, owner: owner, on: device)
    }

    func pipeline(
        _ function: String, source: String, owner: String, on device: any MTLDevice
    ) -> any MTLComputePipelineState {
        let key = "\(function) \(source)"
        lock.lock()
        defer { lock.unlock() }
        if let pipeline = known[key] { return pipeline }
        do {
            let text = "#include <metal_stdlib>\nusing namespace metal;\n\(source)"
            let library = try device.makeLibrary(source: text, options: nil)
            let pipeline = try device.makeComputePipelineState(function: library.makeFunction(name: function)!)
            known[key] = pipeline
            return pipeline
        } catch { preconditionFailure("\(owner): \(error)") }
    }
}
