// Reads and writes outside of a texture.
import Metal

let device = MTLCreateSystemDefaultDevice()!
let source = """
    #include <metal_stdlib>
    using namespace metal;
    kernel void probe(texture2d<float, access::read> from [[texture(0)]],
                      texture2d<float, access::write> to [[texture(1)]], device float4 *y [[buffer(0)]]) {
      y[0] = from.read(uint2(4, 0));
      y[1] = from.read(uint2(0, 100));
      to.write(float4(7), uint2(4, 0));
      to.write(float4(7), uint2(0, 100));
    }
    """
let pipeline = try device.makeComputePipelineState(
    function: device.makeLibrary(source: source, options: nil).makeFunction(name: "probe")!)
let descriptor = MTLTextureDescriptor.texture2DDescriptor(
    pixelFormat: .rgba32Float, width: 4, height: 4, mipmapped: false)
descriptor.usage = [.shaderRead, .shaderWrite]
descriptor.storageMode = .shared
let textures = [device.makeTexture(descriptor: descriptor)!, device.makeTexture(descriptor: descriptor)!]
let ones = [Float](repeating: 1, count: 64)
let region = MTLRegionMake2D(0, 0, 4, 4)
for texture in textures { texture.replace(region: region, mipmapLevel: 0, withBytes: ones, bytesPerRow: 64) }
let y = device.makeBuffer(bytes: ones, length: 32)!
let commands = device.makeCommandQueue()!.makeCommandBuffer()!
let encoder = commands.makeComputeCommandEncoder()!
encoder.setComputePipelineState(pipeline)
encoder.setTextures(textures, range: 0..<2)
encoder.setBuffer(y, offset: 0, index: 0)
let one = MTLSize(width: 1, height: 1, depth: 1)
encoder.dispatchThreadgroups(one, threadsPerThreadgroup: one)
encoder.endEncoding()
commands.commit()
commands.waitUntilCompleted()
let read = (0..<8).map { y.contents().load(fromByteOffset: 4 * $0, as: Float.self) }
var left = [Float](repeating: 0, count: 64)
textures[1].getBytes(&left, bytesPerRow: 64, from: region, mipmapLevel: 0)
print("two reads outside gave \(read); \(left.filter { $0 != 1 }.count) components changed by writes outside")
exit(read.allSatisfy { $0 == 0 } && left == ones ? 0 : 1)
