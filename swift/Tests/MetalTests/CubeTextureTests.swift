import Metal
import XCTest

/// Cube textures, depth textures, and atomic operations on pixels, compared with formulas in double precision.
final class CubeTextureTests: MetalTestCase {
    private static let kernels = """
        #include <metal_stdlib>
        using namespace metal;

        kernel void cube(texturecube<float> in [[texture(0)]], sampler s [[sampler(0)]],
                         device const packed_float3 *at [[buffer(0)]], device float *out [[buffer(1)]],
                         uint i [[thread_position_in_grid]]) {
          out[i] = in.sample(s, float3(at[i])).x;
        }

        kernel void cubes(texturecube_array<float> in [[texture(0)]], sampler s [[sampler(0)]],
                          device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
          out[i] = in.sample(s, float3(0, -1, 0), i).x + 1000 * in.get_array_size() + 10000 * in.get_width();
        }

        kernel void fill(texturecube<float, access::write> out [[texture(0)]], uint3 id [[thread_position_in_grid]]) {
          out.write(float4(100 * id.z + 10 * id.y + id.x), id.xy, id.z);
        }

        kernel void faces(texturecube<float, access::read> in [[texture(0)]], device float *out [[buffer(0)]],
                          uint3 id [[thread_position_in_grid]]) {
          out[(id.z * in.get_height() + id.y) * in.get_width() + id.x] = in.read(id.xy, id.z).x;
        }

        kernel void depths(depth2d<float> in [[texture(0)]], depth2d_array<float> layers [[texture(1)]],
                           sampler s [[sampler(0)]], device const float2 *at [[buffer(0)]],
                           device float4 *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
          constexpr sampler nearest(coord::normalized, filter::nearest);
          out[i] = float4(in.sample(nearest, at[i]), in.sample_compare(s, at[i], 0.5f),
                          layers.sample_compare(s, at[i], 1, 0.5f), in.read(uint2(i % 4, i / 4 % 4)));
        }

        kernel void gathers(depth2d<float> in [[texture(0)]], sampler s [[sampler(0)]],
                            device float4 *out [[buffer(0)]]) {
          out[0] = in.gather(s, float2(0.5));
          out[1] = in.gather_compare(s, float2(0.5), 0.5f);
        }

        kernel void count(texture2d<uint, access::read_write> t [[texture(0)]],
                          texture2d_array<int, access::read_write> a [[texture(1)]],
                          device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
          out[i] = t.atomic_fetch_add(uint2(1, 0), 1u).x;
          t.atomic_fetch_or(uint2(0, 1), uint4(1u << i % 8));
          a.atomic_fetch_min(uint2(1, 1), 1, int4(-int(i)));
          uint4 seen = t.atomic_load(uint2(1, 1));
          while (!t.atomic_compare_exchange_weak(uint2(1, 1), &seen, seen + i)) {}
        }
        """

    private static let library = Result {
        try MTLCreateSystemDefaultDevice()!.makeLibrary(source: kernels, options: nil)
    }

    private func texture(
        _ format: MTLPixelFormat, _ type: MTLTextureType, _ size: Int, layers: Int = 1, slices: [[Float]] = []
    ) throws -> any MTLTexture {
        let descriptor = MTLTextureDescriptor()
        (descriptor.pixelFormat, descriptor.textureType, descriptor.arrayLength) = (format, type, layers)
        (descriptor.width, descriptor.height, descriptor.usage) = (size, size, [.shaderRead, .shaderWrite])
        let texture = try XCTUnwrap(device.makeTexture(descriptor: descriptor))
        for (slice, values) in slices.enumerated() {
            texture.replace(
                region: MTLRegionMake2D(0, 0, size, size), mipmapLevel: 0, slice: slice, withBytes: values,
                bytesPerRow: 4 * size, bytesPerImage: 4 * size * size)
        }
        return texture
    }

    private func dispatch(
        _ name: String, _ size: MTLSize, _ textures: [any MTLTexture], _ buffers: [any MTLBuffer],
        _ sampler: (any MTLSamplerState)? = nil
    ) throws {
        let state = try device.makeComputePipelineState(
            function: try XCTUnwrap(Self.library.get().makeFunction(name: name), "no kernel \(name)"))
        let commands = run { encoder in
            encoder.setComputePipelineState(state)
            encoder.setTextures(textures, range: 0..<textures.count)
            for (index, buffer) in buffers.enumerated() { encoder.setBuffer(buffer, offset: 0, index: index) }
            encoder.setSamplerState(sampler, index: 0)
            encoder.dispatchThreads(size, threadsPerThreadgroup: MTLSizeMake(min(size.width, 8), 1, 1))
        }
        XCTAssertEqual(commands.status, .completed, "\(String(describing: commands.error))")
    }

    private func sampler(linear: Bool, _ comparison: MTLCompareFunction = .never) -> any MTLSamplerState {
        let descriptor = MTLSamplerDescriptor()
        (descriptor.minFilter, descriptor.magFilter) = linear ? (.linear, .linear) : (.nearest, .nearest)
        descriptor.compareFunction = comparison
        return device.makeSamplerState(descriptor: descriptor)!
    }

    // MARK: Cubes

    /// The faces as defined by MSL: the directions of the center, of columns and of rows.
    private static let axes: [(middle: [Double], right: [Double], down: [Double])] = [
        ([1, 0, 0], [0, 0, -1], [0, -1, 0]), ([-1, 0, 0], [0, 0, 1], [0, -1, 0]),
        ([0, 1, 0], [1, 0, 0], [0, 0, 1]), ([0, -1, 0], [1, 0, 0], [0, 0, -1]),
        ([0, 0, 1], [1, 0, 0], [0, -1, 0]), ([0, 0, -1], [-1, 0, 0], [0, -1, 0]),
    ]

    private func direction(_ face: Int, _ s: Double, _ t: Double) -> [Double] {
        let axes = Self.axes[face]
        return (0..<3).map { axes.middle[$0] + s * axes.right[$0] + t * axes.down[$0] }
    }

    private let size = 4

    private func value(_ face: Int, _ x: Int, _ y: Int) -> Double {
        let number = face * 37 + y * 11 + x * 5
        return Double(Float(Double(number % 29) / 7 - 1.5))
    }

    private func filled() throws -> any MTLTexture {
        let slices = (0..<6).map { face in
            (0..<size * size).map { Float(value(face, $0 % size, $0 / size)) }
        }
        return try texture(.r32Float, .typeCube, size, slices: slices)
    }

    private func sampled(_ directions: [[Double]], linear: Bool) throws -> [Float] {
        let out = device.makeBuffer(length: 4 * directions.count)!
        try dispatch(
            "cube", MTLSizeMake(directions.count, 1, 1), [try filled()],
            [buffer(directions.flatMap { $0 }.map(Float.init)), out], sampler(linear: linear))
        return floats(out)
    }

    func testTheNearestPixelOfEachFace() throws {
        var directions: [[Double]] = [], expected: [Float] = []
        for face in 0..<6 {
            for pixel in 0..<size * size {
                let x = pixel % size, y = pixel / size, unit = 2 / Double(size)
                let at = direction(face, (Double(x) + 0.3) * unit - 1, (Double(y) + 0.6) * unit - 1)
                directions.append(at.map { $0 * (0.25 + Double(pixel)) })  // the length has no effect
                expected.append(Float(value(face, x, y)))
            }
        }
        XCTAssertEqual(try sampled(directions, linear: false), expected)
    }

    func testLinearFiltersInsideOfAFace() throws {
        var directions: [[Double]] = [], expected: [Double] = []
        for face in 0..<6 {
            for k in 0..<9 {
                let u = 0.6 + 0.3 * Double(k), v = 3.4 - 0.31 * Double(k)  // in pixels
                directions.append(direction(face, 2 * u / Double(size) - 1, 2 * v / Double(size) - 1))
                let x = Int(u - 0.5), y = Int(v - 0.5), dx = u - 0.5 - Double(x), dy = v - 0.5 - Double(y)
                let rows = [0, 1].map { (1 - dx) * value(face, x, y + $0) + dx * value(face, x + 1, y + $0) }
                expected.append((1 - dy) * rows[0] + dy * rows[1])
            }
        }
        for (got, wanted) in zip(try sampled(directions, linear: true), expected) {
            XCTAssertEqual(Double(got), wanted, accuracy: 4e-6)
        }
    }

    private func mean(_ values: [Double]) -> Double { values.reduce(0, +) / Double(values.count) }

    /// On the edge of two faces, filters give the mean of four pixels, two of each face; in a corner, the mean of
    /// three.
    func testLinearFiltersGoOnAcrossEdges() throws {
        let last = size - 1
        // Column 0 of +x meets the last column of +z. Rows have the same order.
        let edge = mean([value(0, 0, 1), value(0, 0, 2), value(4, last, 1), value(4, last, 2)])
        // +y meets +x: from the bottom up, the last column of +y meets row 0 of +x.
        let top = mean([value(2, last, 1), value(2, last, 2), value(0, 1, 0), value(0, 2, 0)])
        let corner = mean([value(0, 0, 0), value(4, last, 0), value(2, last, last)])
        let got = try sampled([[1, 0, 1], [1, 1, 0], [1, 1, 1]], linear: true)
        for (value, wanted) in zip(got, [edge, top, corner]) { XCTAssertEqual(Double(value), wanted, accuracy: 2e-6) }
    }

    func testArraysOfCubes() throws {
        let slices = (0..<12).map { [Float](repeating: Float($0), count: 4) }
        let cubes = try texture(.r32Float, .typeCubeArray, 2, layers: 2, slices: slices)
        XCTAssertEqual(cubes.arrayLength, 2)
        let out = device.makeBuffer(length: 8)!
        try dispatch("cubes", MTLSizeMake(2, 1, 1), [cubes], [out], sampler(linear: false))
        XCTAssertEqual(floats(out), [22003, 22009])
    }

    func testFacesAreWrittenAndRead() throws {
        let cube = try texture(.r32Float, .typeCube, 2), out = device.makeBuffer(length: 96)!
        try dispatch("fill", MTLSizeMake(2, 2, 6), [cube], [])
        try dispatch("faces", MTLSizeMake(2, 2, 6), [cube], [out])
        for (i, value) in floats(out).enumerated() {
            let face = i / 4, y = i / 2 % 2, x = i % 2
            XCTAssertEqual(value, Float(100 * face + 10 * y + x))
        }
    }

    // MARK: Depths

    private let comparisons: [(MTLCompareFunction, (Float, Float) -> Bool)] = [
        (.never, { _, _ in false }), (.less, { $0 < $1 }), (.equal, { $0 == $1 }), (.lessEqual, { $0 <= $1 }),
        (.greater, { $0 > $1 }), (.notEqual, { $0 != $1 }), (.greaterEqual, { $0 >= $1 }), (.always, { _, _ in true }),
    ]

    func testDepthsAreComparedBeforeTheyAreFiltered() throws {
        let first: [Float] = (0..<16).map { Float($0 * 5 % 9) / 8 }
        let second: [Float] = first.map { 1 - $0 }
        let depths = try texture(.depth32Float, .type2D, 4, slices: [first])
        let layers = try texture(.depth32Float, .type2DArray, 4, layers: 2, slices: [first, second])
        // The positions are between the centers of pixels, so that address modes have no effect.
        let at: [(x: Double, y: Double)] = (0..<16).map { i in
            let x = Double(i * 7 % 16) / 22, y = Double(i * 3 % 16) / 22
            return (0.125 + x, 0.125 + y)
        }
        let places: [Float] = at.flatMap { [Float($0.x), Float($0.y)] }
        for (comparison, passes) in comparisons {
            for linear in [false, true] {
                let out = device.makeBuffer(length: 256)!
                try dispatch(
                    "depths", MTLSizeMake(16, 1, 1), [depths, layers],
                    [buffer(places), out], sampler(linear: linear, comparison))
                for (i, place) in at.enumerated() {
                    let got = floats(out)[4 * i..<4 * i + 4].map(Double.init)
                    let u = Double(Float(place.x)) * 4, v = Double(Float(place.y)) * 4
                    XCTAssertEqual(got[0], Double(first[Int(v) * 4 + Int(u)]))
                    XCTAssertEqual(got[3], Double(first[i]))
                    for (layer, values) in [first, second].enumerated() {
                        let test = { (x: Int, y: Int) in passes(0.5, values[y * 4 + x]) ? 1.0 : 0.0 }
                        let x = Int(u - 0.5), y = Int(v - 0.5), dx = u - 0.5 - Double(x), dy = v - 0.5 - Double(y)
                        let right = min(x + 1, 3), below = min(y + 1, 3)
                        let upper = (1 - dx) * test(x, y) + dx * test(right, y)
                        let lower = (1 - dx) * test(x, below) + dx * test(right, below)
                        let filtered = (1 - dy) * upper + dy * lower
                        let wanted = linear ? filtered : test(Int(u), Int(v))
                        XCTAssertEqual(got[1 + layer], wanted, accuracy: 2e-6, "\(comparison), \(linear), \(place)")
                    }
                }
            }
        }
    }

    func testGathersOfDepths() throws {
        let depths = try texture(.depth32Float, .type2D, 2, slices: [[0.1, 0.2, 0.7, 0.9]])
        let out = device.makeBuffer(length: 32)!
        try dispatch("gathers", one, [depths], [out], sampler(linear: true, .less))
        XCTAssertEqual(floats(out), [0.7, 0.9, 0.2, 0.1, 1, 1, 0, 0])
    }

    func testADepthParameterTakesDepthsOnly() throws {
        let plain = try texture(.r32Float, .type2D, 2), out = device.makeBuffer(length: 32)!
        let state = try device.makeComputePipelineState(function: Self.library.get().makeFunction(name: "gathers")!)
        assertMisuse("has the format r32Float, which is not one of depths") {
            _ = run { encoder in
                encoder.setComputePipelineState(state)
                encoder.setTexture(plain, index: 0)
                encoder.setBuffer(out, offset: 0, index: 0)
                encoder.setSamplerState(sampler(linear: true, .less), index: 0)
                encoder.dispatchThreads(one, threadsPerThreadgroup: one)
            }
        }
        let descriptor = MTLTextureDescriptor()
        descriptor.textureType = .type2DMultisample
        descriptor.sampleCount = 4
        assertMisuse("only a render pass writes textures of several samples a pixel") {
            XCTAssertNil(device.makeTexture(descriptor: descriptor))
        }
    }

    // MARK: Atomic operations

    func testAtomicOperationsOnPixels() throws {
        func integers(_ type: MTLTextureType, _ format: MTLPixelFormat, layers: Int) throws -> any MTLTexture {
            let texture = try self.texture(format, type, 2, layers: layers)
            for slice in 0..<layers {
                texture.replace(
                    region: MTLRegionMake2D(0, 0, 2, 2), mipmapLevel: 0, slice: slice,
                    withBytes: [Int32](repeating: 0, count: 4), bytesPerRow: 8, bytesPerImage: 16)
            }
            return texture
        }
        let counts = try integers(.type2D, .r32Uint, layers: 1)
        let layers = try integers(.type2DArray, .r32Sint, layers: 2)
        let out = device.makeBuffer(length: 400)!
        try dispatch("count", MTLSizeMake(100, 1, 1), [counts, layers], [out])
        let olds = UnsafeBufferPointer(start: out.contents().assumingMemoryBound(to: UInt32.self), count: 100)
        XCTAssertEqual(olds.sorted(), Array(0..<100))
        var pixels = [Int32](repeating: 0, count: 4)
        counts.getBytes(&pixels, bytesPerRow: 8, from: MTLRegionMake2D(0, 0, 2, 2), mipmapLevel: 0)
        XCTAssertEqual(pixels, [0, 100, 255, 4950])
        layers.getBytes(
            &pixels, bytesPerRow: 8, bytesPerImage: 16, from: MTLRegionMake2D(0, 0, 2, 2), mipmapLevel: 0, slice: 1)
        XCTAssertEqual(pixels, [0, 0, 0, -99])
    }
}
