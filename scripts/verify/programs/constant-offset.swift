// A `constant` argument at an offset of 4 bytes: with METAL_DEVICE_WRAPPER_TYPE=1, Metal's validation judges it too.
import Metal

#if os(Linux)
    print("the software device asks for multiples of 32 bytes, as a Mac of another GPU does")
    exit(2)
#endif
let device = MTLCreateSystemDefaultDevice()!
let source = """
    kernel void probe(device float *y [[buffer(0)]], constant float &a [[buffer(1)]]) { y[0] = a; }
    """
let library = try device.makeLibrary(source: source, options: nil)
let pipeline = try device.makeComputePipelineState(function: library.makeFunction(name: "probe")!)
let y = device.makeBuffer(length: 4)!
let values = device.makeBuffer(length: 16)!
for index in 0..<4 { values.contents().storeBytes(of: Float(index) + 0.5, toByteOffset: 4 * index, as: Float.self) }
let commands = device.makeCommandQueue()!.makeCommandBuffer()!
let encoder = commands.makeComputeCommandEncoder()!
encoder.setComputePipelineState(pipeline)
encoder.setBuffer(y, offset: 0, index: 0)
encoder.setBuffer(values, offset: 4, index: 1)
let one = MTLSize(width: 1, height: 1, depth: 1)
encoder.dispatchThreadgroups(one, threadsPerThreadgroup: one)
encoder.endEncoding()
commands.commit()
commands.waitUntilCompleted()
let got = y.contents().load(as: Float.self)
print("at offset 4 the kernel read \(got), expected 1.5")
exit(commands.status == .completed && got == 1.5 ? 0 : 1)
