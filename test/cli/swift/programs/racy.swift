import Foundation
import Metal

/// Sums by `+=` of all threads at once, which is a race; ends with the status that its argument names.
let device = MTLCreateSystemDefaultDevice()!
let source = """
    #include <metal_stdlib>
    kernel void sum(device const float *x, device float *y, uint i [[thread_position_in_grid]]) {
      y[0] += x[i];
    }
    """
let library = try device.makeLibrary(source: source, options: nil)
let pipeline = try device.makeComputePipelineState(function: library.makeFunction(name: "sum")!)
let numbers = [Float](repeating: 1, count: 64)
let x = device.makeBuffer(bytes: numbers, length: 256, options: .storageModeShared)!
let y = device.makeBuffer(bytes: [Float(0)], length: 4, options: .storageModeShared)!
let commands = device.makeCommandQueue()!.makeCommandBuffer()!
let encoder = commands.makeComputeCommandEncoder()!
encoder.setComputePipelineState(pipeline)
encoder.setBuffer(x, offset: 0, index: 0)
encoder.setBuffer(y, offset: 0, index: 1)
encoder.dispatchThreads(
    MTLSize(width: 64, height: 1, depth: 1), threadsPerThreadgroup: MTLSize(width: 32, height: 1, depth: 1))
encoder.endEncoding()
commands.commit()
commands.waitUntilCompleted()
print("done")
exit(CommandLine.arguments.count > 1 ? Int32(CommandLine.arguments[1])! : 0)
