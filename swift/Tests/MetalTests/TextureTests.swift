import Metal
import MetalRuntime
import XCTest

/// Textures in kernels, compared with formulas in double precision.
final class TextureTests: MetalTestCase {
    private static let kernels = """
        #include <metal_stdlib>
        using namespace metal;

        kernel void store(texture2d<float, access::write> out [[texture(0)]], device const float4* in [[buffer(0)]],
                          uint2 id [[thread_position_in_grid]]) {
          out.write(in[id.y * out.get_width() + id.x], id);
        }

        kernel void fetch(texture2d<float, access::read> in [[texture(0)]], device float4* out [[buffer(0)]],
                          ushort2 id [[thread_position_in_grid]]) {
          out[id.y * in.get_width() + id.x] = in.read(id);
        }

        kernel void sample1(texture1d<float> in [[texture(0)]], sampler s [[sampler(0)]],
                            device const float* at [[buffer(0)]], device float* out [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
          out[i] = in.sample(s, at[i]).x;
        }

        kernel void sample2(texture2d<float> in [[texture(0)]], sampler s [[sampler(0)]],
                            device const float2* at [[buffer(0)]], device float* out [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
          out[i] = in.sample(s, at[i]).x;
        }

        kernel void cubic(texture1d<float> in [[texture(0)]], device const float* at [[buffer(0)]],
                          device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
          constexpr sampler s(coord::pixel, filter::bicubic);
          out[i] = in.sample(s, at[i]).x;
        }

        constexpr sampler smooth(coord::normalized, address::repeat, filter::linear);

        kernel void sample3(texture3d<half> in, device const packed_float3* at [[buffer(0)]],
                            device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
          out[i] = in.sample(smooth, float3(at[i])).x;
        }

        kernel void levels(texture2d<float> in [[texture(0)]], device const float* lods [[buffer(0)]],
                           device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
          constexpr sampler s(filter::linear, mip_filter::linear);
          out[i] = in.sample(s, float2(0.5), level(lods[i])).x;
        }

        kernel void number(texture3d<uint, access::write> volume [[texture(0)]],
                           texture2d_array<int, access::read_write> layers [[texture(1)]],
                           uint3 id [[thread_position_in_grid]]) {
          volume.write(uint4(id.x + 10 * id.y + 100 * id.z), id);
          layers.write(layers.read(id.xy, id.z) - 1, id.xy, id.z);
        }

        kernel void pick(array<texture2d<float>, 2> in [[texture(1)]],
                         texture2d<float, access::write> out [[texture(0)]], uint2 id [[thread_position_in_grid]]) {
          constexpr sampler s(coord::pixel);
          out.write(in[id.x % 2].sample(s, float2(id) + 0.5f), id);
        }

        kernel void outside(texture2d<float, access::read_write> t [[texture(0)]], device float4* out [[buffer(0)]],
                            uint2 id [[thread_position_in_grid]]) {
          out[0] = t.read(uint2(t.get_width(), 0));
          t.write(float4(7), uint2(0, t.get_height()));
        }
        """

    private static let library = Result {
        try MTLCreateSystemDefaultDevice()!.makeLibrary(source: kernels, options: nil)
    }

    private func state(_ name: String) throws -> any MTLComputePipelineState {
        try device.makeComputePipelineState(
            function: try XCTUnwrap(Self.library.get().makeFunction(name: name), "no kernel \(name)"))
    }

    private func texture(
        _ format: MTLPixelFormat, _ type: MTLTextureType, _ width: Int, _ height: Int = 1, _ depth: Int = 1,
        layers: Int = 1, levels: Int = 1
    ) throws -> any MTLTexture {
        let descriptor = MTLTextureDescriptor()
        descriptor.pixelFormat = format
        descriptor.textureType = type
        (descriptor.width, descriptor.height, descriptor.depth) = (width, height, depth)
        (descriptor.arrayLength, descriptor.mipmapLevelCount) = (layers, levels)
        descriptor.usage = [.shaderRead, .shaderWrite]
        return try XCTUnwrap(device.makeTexture(descriptor: descriptor))
    }

    private func texture(_ format: MTLPixelFormat, _ width: Int, _ height: Int, levels: Int = 1) throws
        -> any MTLTexture
    {
        try texture(format, .type2D, width, height, levels: levels)
    }

    private func dispatch(
        _ name: String, _ size: MTLSize, textures: [any MTLTexture], buffers: [any MTLBuffer] = [],
        sampler: (any MTLSamplerState)? = nil
    ) throws {
        let state = try self.state(name)
        let commands = run { encoder in
            encoder.setComputePipelineState(state)
            encoder.setTextures(textures, range: 0..<textures.count)
            for (index, buffer) in buffers.enumerated() { encoder.setBuffer(buffer, offset: 0, index: index) }
            encoder.setSamplerState(sampler, index: 0)
            encoder.dispatchThreads(size, threadsPerThreadgroup: MTLSizeMake(min(size.width, 8), 1, 1))
        }
        XCTAssertEqual(commands.status, .completed, "\(String(describing: commands.error))")
    }

    private func ramp(_ count: Int) -> [Float] { (0..<count).map { Float($0 * 7 % 23) / 11 - 0.5 } }

    // MARK: Formats

    /// Returns the value that a format stores: its component is rounded; 0 or 1 for missing components.
    private func kept(_ value: Double, _ format: MTLPixelFormat, component: Int) -> Double {
        let (channels, store) = Self.formats[format]!
        if component >= channels { return component == 3 ? 1 : 0 }
        return store(value, component)
    }

    private static func unorm(_ steps: Double) -> (Double, Int) -> Double {
        { value, _ in (min(max(value, 0), 1) * steps).rounded(.toNearestOrEven) / steps }
    }

    private static func snorm(_ steps: Double) -> (Double, Int) -> Double {
        { value, _ in (min(max(value, -1), 1) * steps).rounded(.toNearestOrEven) / steps }
    }

    /// The formula of IEC 61966-2-1, for all components but alpha.
    private static func srgb(_ value: Double, _ component: Int) -> Double {
        guard component < 3 else { return unorm(255)(value, component) }
        let linear = min(max(value, 0), 1)
        let encoded = linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055
        let stored = (encoded * 255).rounded(.toNearestOrEven) / 255
        return stored <= 0.04045 ? stored / 12.92 : pow((stored + 0.055) / 1.055, 2.4)
    }

    private static let formats: [MTLPixelFormat: (Int, (Double, Int) -> Double)] = [
        .r32Float: (1, { value, _ in value }), .rg32Float: (2, { value, _ in value }),
        .rgba32Float: (4, { value, _ in value }), .r16Float: (1, { value, _ in half(value) }),
        .rgba16Float: (4, { value, _ in half(value) }), .r8Unorm: (1, unorm(255)), .rg8Unorm: (2, unorm(255)),
        .rgba8Unorm: (4, unorm(255)), .bgra8Unorm: (4, unorm(255)), .rgba8Unorm_srgb: (4, srgb),
        .rgba8Snorm: (4, snorm(127)), .r16Unorm: (1, unorm(65535)), .rgba16Snorm: (4, snorm(32767)),
    ]

    private static func half(_ value: Double) -> Double {
        // Eleven bits from the leading one; the values of the test are all normal, or 0.
        guard value != 0 else { return 0 }
        let unit = scalbn(1.0, Int(value.exponent) - 10)
        return (value / unit).rounded(.toNearestOrEven) * unit
    }

    func testEveryFormatKeepsWhatItCan() throws {
        let values = ramp(4 * 15)
        for format in Self.formats.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
            let texture = try self.texture(format, 5, 3), out = device.makeBuffer(length: 4 * values.count)!
            let size = MTLSizeMake(5, 3, 1)
            try dispatch("store", size, textures: [texture], buffers: [buffer(values)])
            try dispatch("fetch", size, textures: [texture], buffers: [out])
            for (index, value) in floats(out).enumerated() {
                let expected = kept(Double(values[index]), format, component: index % 4)
                XCTAssertEqual(Double(value), expected, accuracy: 2e-6, "\(format), component \(index)")
            }
        }
    }

    func testBytesLieAsTheFormatSays() throws {
        let texture = try self.texture(.bgra8Unorm, 2, 1), pixels: [UInt8] = [10, 20, 30, 40, 255, 0, 51, 102]
        texture.replace(region: MTLRegionMake2D(0, 0, 2, 1), mipmapLevel: 0, withBytes: pixels, bytesPerRow: 8)
        let out = device.makeBuffer(length: 32)!
        try dispatch("fetch", MTLSizeMake(2, 1, 1), textures: [texture], buffers: [out])
        let expected = [30, 20, 10, 40, 51, 0, 255, 102].map { Float($0) / 255 }
        XCTAssertEqual(floats(out), expected)
        var bytes = [UInt8](repeating: 0, count: 4)
        texture.getBytes(&bytes, bytesPerRow: 4, from: MTLRegionMake2D(1, 0, 1, 1), mipmapLevel: 0)
        XCTAssertEqual(bytes, [255, 0, 51, 102])
    }

    // MARK: Sampling

    /// Returns the index of a pixel; nil for the border.
    private func index(_ i: Int, _ size: Int, _ mode: MTLSamplerAddressMode) -> Int? {
        switch mode {
        case .repeat: return ((i % size) + size) % size
        case .mirrorRepeat:
            let j = ((i % (2 * size)) + 2 * size) % (2 * size)
            return j < size ? j : 2 * size - 1 - j
        case .clampToEdge: return min(max(i, 0), size - 1)
        case .mirrorClampToEdge: return min(i < 0 ? -1 - i : i, size - 1)
        default: return (0..<size).contains(i) ? i : nil
        }
    }

    private func sampled(
        _ values: [Double], _ sizes: [Int], at: [Double], _ mode: MTLSamplerAddressMode, linear: Bool
    ) -> Double {
        var sum = 0.0
        for corner in 0..<(linear ? 1 << sizes.count : 1) {
            var weight = 1.0, position: Int? = 0, stride = 1
            for (axis, size) in sizes.enumerated() {
                let u = at[axis] * Double(size) - (linear ? 0.5 : 0), low = u.rounded(.down)
                let second = corner >> axis & 1
                weight *= linear ? (second == 1 ? u - low : 1 - (u - low)) : 1
                let i = index(Int(low) + second, size, mode)
                position = i.flatMap { i in position.map { $0 + i * stride } }
                stride *= size
            }
            sum += position.map { values[$0] * weight } ?? 0
        }
        return sum
    }

    private let modes: [MTLSamplerAddressMode] = [
        .clampToEdge, .mirrorClampToEdge, .repeat, .mirrorRepeat, .clampToZero,
    ]

    private func sampler(_ mode: MTLSamplerAddressMode, linear: Bool) -> any MTLSamplerState {
        let descriptor = MTLSamplerDescriptor()
        (descriptor.sAddressMode, descriptor.tAddressMode, descriptor.rAddressMode) = (mode, mode, mode)
        (descriptor.minFilter, descriptor.magFilter) = linear ? (.linear, .linear) : (.nearest, .nearest)
        return device.makeSamplerState(descriptor: descriptor)!
    }

    func testSamplingInOneAndTwoDimensions() throws {
        let row = ramp(6), image = ramp(6 * 5)
        let line = try texture(.r32Float, .type1D, 6), plane = try texture(.r32Float, 6, 5)
        line.replace(region: MTLRegionMake1D(0, 6), mipmapLevel: 0, withBytes: row, bytesPerRow: 24)
        plane.replace(region: MTLRegionMake2D(0, 0, 6, 5), mipmapLevel: 0, withBytes: image, bytesPerRow: 24)
        // Binary fractions, none of which is on the edge of a pixel.
        let places = (0..<48).map { Float($0 * 11 % 48) / 16 - 0.734375 }
        for mode in modes {
            for linear in [false, true] {
                let out = device.makeBuffer(length: 4 * 48)!
                let state = sampler(mode, linear: linear)
                try dispatch(
                    "sample1", MTLSizeMake(48, 1, 1), textures: [line], buffers: [buffer(places), out], sampler: state)
                for (i, value) in floats(out).enumerated() {
                    let expected = sampled(row.map(Double.init), [6], at: [Double(places[i])], mode, linear: linear)
                    XCTAssertEqual(
                        Double(value), expected, accuracy: 2e-6, "\(mode), linear \(linear), at \(places[i])")
                }
                try dispatch(
                    "sample2", MTLSizeMake(24, 1, 1), textures: [plane], buffers: [buffer(places), out], sampler: state)
                for (i, value) in floats(out).prefix(24).enumerated() {
                    let at = [Double(places[2 * i]), Double(places[2 * i + 1])]
                    let expected = sampled(image.map(Double.init), [6, 5], at: at, mode, linear: linear)
                    XCTAssertEqual(Double(value), expected, accuracy: 2e-6, "\(mode), linear \(linear), at \(at)")
                }
            }
        }
    }

    /// The Catmull-Rom cubic through four pixels reproduces a line, and differs from a linear filter elsewhere.
    func testBicubicSampling() throws {
        let row = (0..<8).map { Float(($0 * 5) % 8) }
        let line = try texture(.r32Float, .type1D, 8)
        line.replace(region: MTLRegionMake1D(0, 8), mipmapLevel: 0, withBytes: row, bytesPerRow: 32)
        let places = (0..<40).map { 2 + Float($0) / 10 }
        let out = device.makeBuffer(length: 4 * 40)!
        try dispatch("cubic", MTLSizeMake(40, 1, 1), textures: [line], buffers: [buffer(places), out])
        for (place, value) in zip(places, floats(out)) {
            let u = Double(place) - 0.5, first = Int(u), t = u - Double(first)
            let p = (-1...2).map { Double(row[first + $0]) }
            let linear = 2 * p[1] + (p[2] - p[0]) * t
            let square = (2 * p[0] - 5 * p[1] + 4 * p[2] - p[3]) * t * t
            let cube = (3 * p[1] - p[0] - 3 * p[2] + p[3]) * t * t * t
            XCTAssertEqual(Double(value), 0.5 * (linear + square + cube), accuracy: 2e-5, "at \(place)")
        }
    }

    func testSamplingInThreeDimensionsAndBetweenLevels() throws {
        let values = ramp(4 * 3 * 2), volume = try texture(.r32Float, .type3D, 4, 3, 2)
        volume.replace(
            region: MTLRegionMake3D(0, 0, 0, 4, 3, 2), mipmapLevel: 0, slice: 0, withBytes: values, bytesPerRow: 16,
            bytesPerImage: 48)
        let places = (0..<30).map { Float($0 * 7 % 30) / 16 - 0.421875 }, out = device.makeBuffer(length: 40)!
        try dispatch("sample3", MTLSizeMake(10, 1, 1), textures: [volume], buffers: [buffer(places), out])
        for (i, value) in floats(out).enumerated() {
            let at = (0..<3).map { Double(places[3 * i + $0]) }
            let expected = sampled(values.map(Double.init), [4, 3, 2], at: at, .repeat, linear: true)
            XCTAssertEqual(Double(value), expected, accuracy: 1e-3, "at \(at)")  // components are half
        }
        let pyramid = try texture(.r32Float, 4, 4, levels: 3)
        for level in 0..<3 {
            let size = 4 >> level, constant = [Float](repeating: Float(level * level), count: size * size)
            pyramid.replace(
                region: MTLRegionMake2D(0, 0, size, size), mipmapLevel: level, withBytes: constant,
                bytesPerRow: 4 * size)
        }
        let lods: [Float] = [-1, 0, 0.5, 1, 1.25, 2, 9]
        try dispatch("levels", MTLSizeMake(7, 1, 1), textures: [pyramid], buffers: [buffer(lods), out])
        XCTAssertEqual(Array(floats(out).prefix(7)), [0, 0, 0.5, 1, 1.75, 4, 4])
    }

    // MARK: Volumes, arrays, views

    func testVolumesAndArraysOfIntegers() throws {
        let volume = try texture(.r16Uint, .type3D, 3, 2, 2)
        let layers = try texture(.rgba8Sint, .type2DArray, 3, 2, layers: 2)
        for layer in 0..<2 {
            layers.replace(
                region: MTLRegionMake2D(0, 0, 3, 2), mipmapLevel: 0, slice: layer,
                withBytes: [Int8](repeating: -128 + Int8(layer), count: 24), bytesPerRow: 12, bytesPerImage: 24)
        }
        try dispatch("number", MTLSizeMake(3, 2, 2), textures: [volume, layers])
        var numbers = [UInt16](repeating: 0, count: 12)
        volume.getBytes(
            &numbers, bytesPerRow: 6, bytesPerImage: 12, from: MTLRegionMake3D(0, 0, 0, 3, 2, 2), mipmapLevel: 0,
            slice: 0)
        XCTAssertEqual(numbers, [0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112])
        var bytes = [Int8](repeating: 0, count: 24)
        layers.getBytes(
            &bytes, bytesPerRow: 12, bytesPerImage: 24, from: MTLRegionMake2D(0, 0, 3, 2), mipmapLevel: 0, slice: 1)
        XCTAssertEqual(Set(bytes), [-128])
        layers.getBytes(
            &bytes, bytesPerRow: 12, bytesPerImage: 24, from: MTLRegionMake2D(0, 0, 3, 2), mipmapLevel: 0, slice: 0)
        XCTAssertEqual(Set(bytes), [-128], "a component that is too small becomes the smallest")
    }

    func testArraysOfTexturesAndViewsAndBuffers() throws {
        let out = try texture(.r32Float, 4, 1)
        let pixels = buffer([0, 1, 2, 3] + ramp(4))
        let descriptor = MTLTextureDescriptor.texture2DDescriptor(
            pixelFormat: .r32Float, width: 4, height: 1, mipmapped: false)
        let first = try XCTUnwrap(pixels.makeTexture(descriptor: descriptor, offset: 0, bytesPerRow: 16))
        let layers = try texture(.r32Float, .type2DArray, 4, 1, layers: 2)
        layers.replace(
            region: MTLRegionMake2D(0, 0, 4, 1), mipmapLevel: 0, slice: 1, withBytes: [10, 11, 12, 13] as [Float],
            bytesPerRow: 16, bytesPerImage: 16)
        let second = try XCTUnwrap(
            layers.makeTextureView(pixelFormat: .r32Float, textureType: .type2D, levels: 0..<1, slices: 1..<2))
        XCTAssertEqual(second.parentRelativeSlice, 1)
        XCTAssertTrue(first.buffer === pixels)
        try dispatch("pick", MTLSizeMake(4, 1, 1), textures: [out, first, second])
        var values = [Float](repeating: 0, count: 4)
        out.getBytes(&values, bytesPerRow: 16, from: MTLRegionMake2D(0, 0, 4, 1), mipmapLevel: 0)
        XCTAssertEqual(values, [0, 11, 2, 13])
    }

    func testCopiesBetweenBuffersAndTextures() throws {
        let source = buffer((0..<64).map(Float.init)), target = device.makeBuffer(length: 64)!
        let texture = try self.texture(.r32Float, 8, 8), other = try self.texture(.r32Float, 8, 8)
        let commands = queue.makeCommandBuffer()!, encoder = commands.makeBlitCommandEncoder()!
        encoder.copy(
            from: source, sourceOffset: 0, sourceBytesPerRow: 32, sourceBytesPerImage: 256,
            sourceSize: MTLSizeMake(8, 8, 1), to: texture, destinationSlice: 0, destinationLevel: 0,
            destinationOrigin: MTLOrigin())
        encoder.copy(from: texture, to: other)
        encoder.copy(
            from: other, sourceSlice: 0, sourceLevel: 0, sourceOrigin: MTLOriginMake(2, 1, 0),
            sourceSize: MTLSizeMake(2, 2, 1), to: target, destinationOffset: 4, destinationBytesPerRow: 16,
            destinationBytesPerImage: 32)
        encoder.endEncoding()
        commands.commit()
        commands.waitUntilCompleted()
        let values = floats(target)
        XCTAssertEqual([values[1], values[2], values[5], values[6]], [10, 11, 18, 19])
    }

    // MARK: Errors

    func testOutsideOfATextureIsAFindingAndDoesNothing() throws {
        XCTAssertTrue(mrt_setting_set("check", "1", nil))
        defer { mrt_setting_set("check", "0", nil) }
        let texture = try self.texture(.r32Float, 4, 4), out = buffer([1, 1, 1, 1])
        texture.label = "image"
        let zeros = [Float](repeating: 0, count: 16)
        texture.replace(region: MTLRegionMake2D(0, 0, 4, 4), mipmapLevel: 0, withBytes: zeros, bytesPerRow: 16)
        try dispatch("outside", one, textures: [texture], buffers: [out])
        XCTAssertEqual(floats(out), [0, 0, 0, 0])
        var values = [Float](repeating: 1, count: 16)
        texture.getBytes(&values, bytesPerRow: 16, from: MTLRegionMake2D(0, 0, 4, 4), mipmapLevel: 0)
        XCTAssertEqual(values, zeros)
        let json = mrt_findings_json(true)!
        defer { mrt_string_free(json) }
        let found = String(cString: json)
        XCTAssertTrue(found.contains("reads outside of a texture 'image': pixel (4, 0, 0)"), found)
        XCTAssertTrue(found.contains("writes outside of a texture 'image': pixel (0, 4, 0)"), found)
    }

    func testMisuse() throws {
        let state = try self.state("fetch"), out = device.makeBuffer(length: 64)!
        func dispatch(_ texture: (any MTLTexture)?) -> any MTLCommandBuffer {
            run { encoder in
                encoder.setComputePipelineState(state)
                encoder.setTexture(texture, index: 0)
                encoder.setBuffer(out, offset: 0, index: 0)
                encoder.dispatchThreads(one, threadsPerThreadgroup: one)
            }
        }
        assertMisuse("missing Texture binding at index 0 for in[0]") { XCTAssertEqual(dispatch(nil).status, .error) }
        let integers = try texture(.r32Uint, 2, 2), line = try texture(.r32Float, .type1D, 2)
        assertMisuse("whose components are not float") { _ = dispatch(integers) }
        assertMisuse("is type1D, not type2D") { _ = dispatch(line) }
        let descriptor = MTLTextureDescriptor()
        descriptor.usage = .shaderWrite
        let unreadable = device.makeTexture(descriptor: descriptor)!
        assertMisuse("was not made with the usage that the kernel has of it: .shaderRead") { _ = dispatch(unreadable) }
        descriptor.pixelFormat = .bc1_rgba
        assertMisuse("has no textures of the format bc1_rgba") {
            XCTAssertNil(device.makeTexture(descriptor: descriptor))
        }
    }
}
