import Foundation
import Metal
import Shared
import os.log

public struct Saxpy {
    struct Parameters {
        var factor: Float
        var count: UInt32
    }

    public enum Failure: Error { case noDevice }

    private let device: any MTLDevice
    private let queue: any MTLCommandQueue
    private let count: any MTLComputePipelineState
    private let saxpy: any MTLComputePipelineState

    public init() throws {
        guard let device = MTLCreateSystemDefaultDevice(), let queue = device.makeCommandQueue() else {
            throw Failure.noDevice
        }
        let library = try device.makeDefaultLibrary(bundle: Bundle.module)
        func pipeline(_ name: String) throws -> any MTLComputePipelineState {
            try device.makeComputePipelineState(function: library.makeFunction(name: name)!)
        }
        Logger(subsystem: "saxpy", category: "kernels").debug("compiled on \(device.name)")
        self.device = device
        self.queue = queue
        count = try pipeline("count")
        saxpy = try pipeline("saxpy")
    }

    /// The factor lies in a resource of the package.
    public static func factor() throws -> Float {
        let url = Bundle.module.url(forResource: "weights", withExtension: "txt")!
        return Float(try String(contentsOf: url, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines))!
    }

    /// factor · i, for each i below the length that the package shares.
    public func callAsFunction(factor: Float) -> [Float] {
        var parameters = Parameters(factor: factor, count: UInt32(length))
        let x = device.makeBuffer(length: 4 * length)!, y = device.makeBuffer(length: 4 * length)!
        let commands = queue.makeCommandBuffer()!, encoder = commands.makeComputeCommandEncoder()!
        for (state, outputs) in [(count, [x]), (saxpy, [x, y])] {
            encoder.setComputePipelineState(state)
            for (index, buffer) in outputs.enumerated() { encoder.setBuffer(buffer, offset: 0, index: index) }
            encoder.setBytes(&parameters, length: MemoryLayout<Parameters>.stride, index: 2)
            encoder.dispatchThreads(
                MTLSize(width: length, height: 1, depth: 1),
                threadsPerThreadgroup: MTLSize(width: 32, height: 1, depth: 1))
        }
        encoder.endEncoding()
        commands.commit()
        commands.waitUntilCompleted()
        let values = y.contents().bindMemory(to: Float.self, capacity: length)
        return Array(UnsafeBufferPointer(start: values, count: length))
    }
}
