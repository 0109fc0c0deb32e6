import Metal
import XCTest

/// Structures in argument buffers, into which the host writes the 8 bytes of a texture, sampler or buffer.
final class ArgumentBufferTests: MetalTestCase {
    private static let layers = """
        #include <metal_stdlib>
        using namespace metal;

        struct Layer {
            texture2d<float> image;
            sampler filter;
            float scale;
            device const float *offsets;
            array<texture2d<float>, 2> others;
        };
        static_assert(sizeof(sampler) == 8 && alignof(sampler) == 8, "");
        static_assert(sizeof(depth2d_array<float>) == 8 && sizeof(texture_buffer<int>) == 8, "");
        static_assert(sizeof(Layer) == 48, "");

        kernel void blend(
            constant Layer *layers [[buffer(0)]], device float *result [[buffer(1)]],
            constant float *places [[buffer(2)]], uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]])
        {
            constexpr sampler last(filter::nearest, mip_filter::nearest, lod_clamp(1, 1));
            constant Layer &layer = layers[at.y];
            float value = layer.image.sample(layer.filter, float2(places[at.x], 0.5)).x * layer.scale;
            value += layer.offsets[at.x] + layer.others[1].read(uint2(0)).x;
            sampler copy = layer.filter;
            if (layer.others[0].sample(copy, float2(0.5)).x != layer.others[0].read(uint2(0)).x) value = NAN;
            if (layer.image.sample(last, float2(0.125, 0.5)).x != layer.image.read(uint2(0), 1).x) value = NAN;
            result[at.y * size.x + at.x] = value;
        }
        """

    private struct Layer {
        var image, filter: MTLResourceID
        var scale: Float
        var offsets: UInt64
        var first, second: MTLResourceID
    }

    private func texture(_ width: Int, levels: Int, _ values: [Float]) -> any MTLTexture {
        let descriptor = MTLTextureDescriptor.texture2DDescriptor(
            pixelFormat: .r32Float, width: width, height: 1, mipmapped: levels > 1)
        descriptor.mipmapLevelCount = levels
        let texture = device.makeTexture(descriptor: descriptor)!
        for level in 0..<levels {
            let count = width >> level
            texture.replace(
                region: MTLRegionMake2D(0, 0, count, 1), mipmapLevel: level,
                withBytes: values.map { $0 + Float(level) }, bytesPerRow: 4 * count)
        }
        return texture
    }

    func testTexturesAndSamplersInStructures() throws {
        let library = try device.makeLibrary(source: Self.layers, options: nil)
        let pipeline = try device.makeComputePipelineState(function: library.makeFunction(name: "blend")!)
        var draws = Draws(state: 11)
        let width = 8, count = 32
        for round in 0..<4 {
            // Binary fractions, none of which is on the edge of a pixel.
            let places = (0..<count).map { Float($0 * 7 % count) / 32 + 0.015625 / 2 }
            let offsets = (0..<count).map { _ in Float(draws.number()) }
            let shared = buffer(offsets)
            var resources: [any MTLResource] = [shared], samplers: [any MTLSamplerState] = []
            var layers: [Layer] = [], expected: [Double] = []
            for isLinear in [round % 2 == 0, round % 2 == 1, true] {
                let pixels = (0..<width).map { _ in Float(draws.number()) }
                let image = texture(width, levels: 2, pixels)
                let others = (0..<2).map { _ in texture(1, levels: 1, [Float(draws.number())]) }
                let settings = MTLSamplerDescriptor()
                (settings.minFilter, settings.magFilter) = isLinear ? (.linear, .linear) : (.nearest, .nearest)
                settings.supportArgumentBuffers = true
                let level = round / 2
                (settings.mipFilter, settings.lodMinClamp) = (.nearest, Float(level))
                let state = device.makeSamplerState(descriptor: settings)!
                let scale = Float(draws.number())
                samplers.append(state)
                resources += [image] + others
                layers.append(
                    Layer(
                        image: image.gpuResourceID, filter: state.gpuResourceID, scale: scale,
                        offsets: shared.gpuAddress, first: others[0].gpuResourceID, second: others[1].gpuResourceID))
                var other: Float = 0
                others[1].getBytes(&other, bytesPerRow: 4, from: MTLRegionMake2D(0, 0, 1, 1), mipmapLevel: 0)
                for (place, offset) in zip(places, offsets) {
                    let length = width >> level, at = Double(place) * Double(length)
                    let pixel = { (i: Double) in Double(pixels[min(max(Int(i), 0), length - 1)]) + Double(level) }
                    let first = (at - 0.5).rounded(.down), weight = at - 0.5 - first
                    let value =
                        isLinear ? pixel(first) * (1 - weight) + pixel(first + 1) * weight : pixel(at.rounded(.down))
                    expected.append(value * Double(scale) + Double(offset) + Double(other))
                }
            }
            let arguments = device.makeBuffer(bytes: layers, length: MemoryLayout<Layer>.stride * layers.count)!
            let result = device.makeBuffer(length: 4 * expected.count)!, given = buffer(places)
            let commands = run { encoder in
                encoder.setComputePipelineState(pipeline)
                for (index, each) in [arguments, result, given].enumerated() {
                    encoder.setBuffer(each, offset: 0, index: index)
                }
                encoder.useResources(resources, usage: .read)
                encoder.dispatchThreads(
                    MTLSizeMake(count, layers.count, 1), threadsPerThreadgroup: MTLSizeMake(count, 1, 1))
            }
            XCTAssertNil(commands.error)
            for (i, (value, right)) in zip(floats(result), expected).enumerated() {
                XCTAssertEqual(Double(value), right, accuracy: 2e-5, "round \(round), element \(i)")
            }
            withExtendedLifetime(samplers) {}
        }
    }
}
