import Metal
import MetalPerformanceShaders
import XCTest

/// Filters of MetalPerformanceShaders on random images, compared with formulas in double precision.
final class ImageFilterTests: MetalTestCase {
    private var draws = Draws(state: 311)

    private typealias Image = [[SIMD4<Double>]]

    private func drawn(_ width: Int, _ height: Int) -> Image {
        (0..<height).map { _ in
            (0..<width).map { _ in
                let values = (0..<4).map { _ in Double(Float((draws.number() + 2) / 4)) }
                return SIMD4(values[0], values[1], values[2], values[3])
            }
        }
    }

    private func texture(_ image: Image, _ format: MTLPixelFormat = .rgba32Float) -> any MTLTexture {
        let (width, height) = (image[0].count, image.count)
        let result = empty(width, height, format), size = format == .r32Float ? 1 : 4
        let floats = image.flatMap { $0.flatMap { pixel in (0..<size).map { Float(pixel[$0]) } } }
        result.replace(
            region: MTLRegionMake2D(0, 0, width, height), mipmapLevel: 0, withBytes: floats,
            bytesPerRow: width * size * 4)
        return result
    }

    private func empty(_ width: Int, _ height: Int, _ format: MTLPixelFormat = .rgba32Float) -> any MTLTexture {
        let descriptor = MTLTextureDescriptor.texture2DDescriptor(
            pixelFormat: format, width: width, height: height, mipmapped: false)
        (descriptor.usage, descriptor.storageMode) = ([.shaderRead, .shaderWrite], .shared)
        return device.makeTexture(descriptor: descriptor)!
    }

    private func read(_ texture: any MTLTexture) -> Image {
        let size = texture.pixelFormat == .r32Float ? 1 : 4
        var floats = [Float](repeating: 0, count: texture.width * texture.height * size)
        texture.getBytes(
            &floats, bytesPerRow: texture.width * size * 4,
            from: MTLRegionMake2D(0, 0, texture.width, texture.height), mipmapLevel: 0)
        return (0..<texture.height).map { y in
            (0..<texture.width).map { x in
                let c = (0..<4).map { $0 < size ? Double(floats[(y * texture.width + x) * size + $0]) : 0 }
                return SIMD4(c[0], c[1], c[2], c[3])
            }
        }
    }

    private func run(_ encode: (any MTLCommandBuffer) -> Void) {
        let commands = queue.makeCommandBuffer()!
        encode(commands)
        commands.commit()
        commands.waitUntilCompleted()
        XCTAssertNil(commands.error)
    }

    private func filtered(
        _ filter: MPSUnaryImageKernel, _ image: Image, width: Int? = nil, height: Int? = nil,
        from: MTLPixelFormat = .rgba32Float, to: MTLPixelFormat = .rgba32Float
    ) -> Image {
        let result = empty(width ?? image[0].count, height ?? image.count, to), source = texture(image, from)
        run { filter.encode(commandBuffer: $0, sourceTexture: source, destinationTexture: result) }
        return read(result)
    }

    /// The pixel at a position, with edges that are 0 or continue.
    private func pixel(_ image: Image, _ x: Int, _ y: Int, clamps: Bool) -> SIMD4<Double> {
        let (width, height) = (image[0].count, image.count)
        if !clamps, !(0..<width).contains(x) || !(0..<height).contains(y) { return SIMD4() }
        return image[min(max(y, 0), height - 1)][min(max(x, 0), width - 1)]
    }

    private func mixed(_ a: SIMD4<Double>, _ b: SIMD4<Double>, _ part: Double) -> SIMD4<Double> {
        let other: SIMD4<Double> = b * part
        return a * (1 - part) + other
    }

    private func convolved(_ image: Image, _ weights: [[Double]], clamps: Bool) -> Image {
        let (j0, i0) = (weights.count / 2, weights[0].count / 2)
        return image.indices.map { y in
            image[0].indices.map { x in
                var sum = SIMD4<Double>()
                for (j, row) in weights.enumerated() {
                    for (i, weight) in row.enumerated() {
                        sum += weight * pixel(image, x + i - i0, y + j - j0, clamps: clamps)
                    }
                }
                return sum
            }
        }
    }

    private func assertEqual(_ a: Image, _ b: Image, _ accuracy: Double = 1e-5, channels: Int = 4, line: UInt = #line) {
        XCTAssertEqual([a.count, a[0].count], [b.count, b[0].count], line: line)
        for (row, other) in zip(a, b) {
            for (x, y) in zip(row, other) {
                for c in 0..<channels { XCTAssertEqual(x[c], y[c], accuracy: accuracy, line: line) }
            }
        }
    }

    func testConvolutions() {
        let image = drawn(9, 7), weights = (0..<15).map { _ in Float(draws.number()) }
        let rows = (0..<3).map { j in (0..<5).map { Double(weights[j * 5 + $0]) } }
        let filter = MPSImageConvolution(device: device, kernelWidth: 5, kernelHeight: 3, weights: weights)
        filter.bias = 0.25
        for clamps in [false, true] {
            filter.edgeMode = clamps ? .clamp : .zero
            let expected = convolved(image, rows, clamps: clamps).map { $0.map { $0 + 0.25 } }
            assertEqual(filtered(filter, image), expected)
        }
        let laplacian: [[Double]] = [[0, 1, 0], [1, -4, 1], [0, 1, 0]]
        assertEqual(
            filtered(MPSImageLaplacian(device: device), image), convolved(image, laplacian, clamps: false))
    }

    func testBlurs() {
        let image = drawn(11, 8)
        let box = MPSImageBox(device: device, kernelWidth: 3, kernelHeight: 5)
        let mean = [[Double]](repeating: [Double](repeating: 1.0 / 15, count: 3), count: 5)
        assertEqual(filtered(box, image), convolved(image, mean, clamps: false))
        let tent = MPSImageTent(device: device, kernelWidth: 3, kernelHeight: 3)
        tent.edgeMode = .clamp
        let rising: [[Double]] = [[1, 2, 1], [2, 4, 2], [1, 2, 1]].map { $0.map { $0 / 16 } }
        assertEqual(filtered(tent, image), convolved(image, rising, clamps: true))
        let gauss = MPSImageGaussianBlur(device: device, sigma: 1.5)
        gauss.edgeMode = .clamp
        let terms = (-6...6).map { exp(-Double($0 * $0) / 4.5) }, sum = terms.reduce(0, +)
        let bell = terms.map { a in terms.map { a * $0 / (sum * sum) } }
        assertEqual(filtered(gauss, image), convolved(image, bell, clamps: true))
    }

    func testOffsetsClipsAndWorkInPlace() {
        let image = drawn(8, 6), box = MPSImageBox(device: device, kernelWidth: 3, kernelHeight: 3)
        let ninths = [[Double]](repeating: [Double](repeating: 1.0 / 9, count: 3), count: 3)
        let all = convolved(image, ninths, clamps: false)
        box.offset = MPSOffset(x: 2, y: 1, z: 0)
        box.clipRect = MTLRegionMake2D(1, 2, 3, 2)
        // Pixels outside the clip do not change.
        let target = texture(Image(repeating: [SIMD4<Double>](repeating: SIMD4(), count: 8), count: 6))
        let source = texture(image)
        run { box.encode(commandBuffer: $0, sourceTexture: source, destinationTexture: target) }
        let part = read(target)
        for y in 0..<6 {
            for x in 0..<8 {
                let isInside = (1..<4).contains(x) && (2..<4).contains(y)
                let expected = isInside ? all[y - 2 + 1][x - 1 + 2] : SIMD4()
                for c in 0..<4 { XCTAssertEqual(part[y][x][c], expected[c], accuracy: 1e-5, "\(x) \(y)") }
            }
        }
        let plain = MPSImageBox(device: device, kernelWidth: 3, kernelHeight: 3)
        var inPlace = texture(image)
        let first = inPlace
        run { XCTAssertTrue(plain.encode(commandBuffer: $0, inPlaceTexture: &inPlace, fallbackCopyAllocator: nil)) }
        XCTAssertTrue(inPlace === first)
        assertEqual(read(inPlace), all)
        run {
            plain.encode(commandBuffer: $0, inPlaceTexture: &inPlace) { _, _, texture in
                self.empty(texture.width, texture.height)
            }
        }
        XCTAssertFalse(inPlace === first)
    }

    func testEdgesAndThresholds() {
        let image = drawn(7, 7), gray = image.map { $0.map { 0.299 * $0.x + 0.587 * $0.y + 0.114 * $0.z } }
        let grays = gray.map { $0.map { SIMD4($0, 0, 0, 0) } }
        let across = convolved(grays, [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], clamps: true)
        let down = convolved(grays, [[-1, -2, -1], [0, 0, 0], [1, 2, 1]], clamps: true)
        let sobel = MPSImageSobel(device: device)
        sobel.edgeMode = .clamp
        let size = zip(across, down).map {
            zip($0, $1).map { SIMD4(($0.x * $0.x + $1.x * $1.x).squareRoot(), 0, 0, 0) }
        }
        assertEqual(filtered(sobel, image, to: .r32Float), size, channels: 1)
        let t: Float = 0.5, top: Float = 0.8, none: UnsafePointer<Float>? = nil
        let binary = MPSImageThresholdBinary(
            device: device, thresholdValue: t, maximumValue: top, linearGrayColorTransform: none)
        let inverse = MPSImageThresholdBinaryInverse(
            device: device, thresholdValue: t, maximumValue: top, linearGrayColorTransform: none)
        let truncate = MPSImageThresholdTruncate(device: device, thresholdValue: t, linearGrayColorTransform: none)
        let toZero = MPSImageThresholdToZero(device: device, thresholdValue: t, linearGrayColorTransform: none)
        let toZeroInverse = MPSImageThresholdToZeroInverse(
            device: device, thresholdValue: t, linearGrayColorTransform: none)
        let kinds: [(MPSUnaryImageKernel, (Double) -> Double)] = [
            (binary, { $0 > 0.5 ? 0.8 : 0 }), (inverse, { $0 > 0.5 ? 0 : 0.8 }), (truncate, { $0 > 0.5 ? 0.5 : $0 }),
            (toZero, { $0 > 0.5 ? $0 : 0 }), (toZeroInverse, { $0 > 0.5 ? 0 : $0 }),
        ]
        for (filter, formula) in kinds {
            let expected = gray.map { $0.map { SIMD4(formula($0), 0, 0, 0) } }
            assertEqual(filtered(filter, image, to: .r32Float), expected, channels: 1)
            let single = image.map { $0.map { SIMD4(formula($0.x), 0, 0, 0) } }
            assertEqual(filtered(filter, image, from: .r32Float, to: .r32Float), single, channels: 1)
        }
    }

    func testOrderStatistics() {
        let image = drawn(8, 6)
        func window(_ x: Int, _ y: Int, _ w: Int, _ h: Int, _ c: Int) -> [Double] {
            (0..<h).flatMap { j in (0..<w).map { pixel(image, x + $0 - w / 2, y + j - h / 2, clamps: true)[c] } }
        }
        func each(_ w: Int, _ h: Int, _ choose: ([Double]) -> Double) -> Image {
            image.indices.map { y in
                image[0].indices.map { x in
                    let c = (0..<4).map { choose(window(x, y, w, h, $0)) }
                    return SIMD4(c[0], c[1], c[2], c[3])
                }
            }
        }
        let median = MPSImageMedian(device: device, kernelDiameter: 3)
        assertEqual(filtered(median, image), each(3, 3) { $0.sorted()[4] })
        let (largest, smallest) = (
            MPSImageAreaMax(device: device, kernelWidth: 5, kernelHeight: 3),
            MPSImageAreaMin(device: device, kernelWidth: 5, kernelHeight: 3)
        )
        assertEqual(filtered(largest, image), each(5, 3) { $0.max()! })
        assertEqual(filtered(smallest, image), each(5, 3) { $0.min()! })
        let probe = (0..<9).map { _ in Float(draws.number() / 4) }
        let dilate = MPSImageDilate(device: device, kernelWidth: 3, kernelHeight: 3, values: probe)
        let erode = MPSImageErode(device: device, kernelWidth: 3, kernelHeight: 3, values: probe)
        assertEqual(filtered(dilate, image), each(3, 3) { zip($0, probe).map { $0 - Double($1) }.max()! })
        assertEqual(filtered(erode, image), each(3, 3) { zip($0, probe).map { $0 + Double($1) }.min()! })
    }

    func testScales() {
        let image = drawn(6, 4)
        func at(_ place: Int, _ scale: Double) -> Double { (Double(place) + 0.5) / scale - 0.5 }
        let linear = filtered(MPSImageBilinearScale(device: device), image, width: 9, height: 3)
        for y in 0..<3 {
            for x in 0..<9 {
                let u = at(x, 1.5), v = at(y, 0.75), i = Int(floor(u)), j = Int(floor(v))
                let above = mixed(pixel(image, i, j, clamps: true), pixel(image, i + 1, j, clamps: true), u - floor(u))
                let left = pixel(image, i, j + 1, clamps: true), right = pixel(image, i + 1, j + 1, clamps: true)
                let expected = mixed(above, mixed(left, right, u - floor(u)), v - floor(v))
                for c in 0..<4 { XCTAssertEqual(linear[y][x][c], expected[c], accuracy: 1e-5) }
            }
        }
        let flat = Image(repeating: [SIMD4<Double>](repeating: SIMD4(0.25, 0.5, 0.75, 1), count: 5), count: 5)
        assertEqual(
            filtered(MPSImageLanczosScale(device: device), flat, width: 3, height: 8),
            Image(repeating: [SIMD4<Double>](repeating: SIMD4(0.25, 0.5, 0.75, 1), count: 3), count: 8))
        assertEqual(filtered(MPSImageLanczosScale(device: device), image), image)
        let moved = MPSImageBilinearScale(device: device)
        var transform = MPSScaleTransform(scaleX: 1, scaleY: 1, translateX: 2, translateY: 0)
        withUnsafePointer(to: &transform) { moved.scaleTransform = $0 }
        assertEqual(filtered(moved, image), image.map { row in row.indices.map { row[max($0 - 2, 0)] } })
        let turned = filtered(MPSImageTranspose(device: device), image, width: 4, height: 6)
        assertEqual(turned, image[0].indices.map { x in image.map { $0[x] } })
    }

    func testArithmetic() {
        let a = drawn(5, 4), b = drawn(5, 4)
        let operations: [(MPSImageArithmetic, (SIMD4<Double>, SIMD4<Double>) -> SIMD4<Double>)] = [
            (MPSImageAdd(device: device), { $0 + $1 }), (MPSImageSubtract(device: device), { $0 - $1 }),
            (MPSImageMultiply(device: device), { $0 * $1 }), (MPSImageDivide(device: device), { $0 / $1 }),
        ]
        for (filter, formula) in operations {
            (filter.primaryScale, filter.secondaryScale, filter.bias, filter.maximumValue) = (2, 0.5, 0.125, 3)
            let result = empty(5, 4), first = texture(a), second = texture(b)
            run {
                filter.encode(
                    commandBuffer: $0, primaryTexture: first, secondaryTexture: second, destinationTexture: result)
            }
            let expected = zip(a, b).map {
                zip($0, $1).map { pointwiseMin(formula($0 * 2, $1 * 0.5) + 0.125, SIMD4(repeating: 3)) }
            }
            assertEqual(read(result), expected, 1e-4)
        }
    }

    func testStatisticsAndHistograms() {
        let image = drawn(13, 9), all = image.flatMap { $0 }, count = Double(all.count)
        let mean = all.reduce(SIMD4(), +) / count
        let variance = all.map { ($0 - mean) * ($0 - mean) }.reduce(SIMD4(), +) / count
        assertEqual(filtered(MPSImageStatisticsMean(device: device), image, width: 1, height: 1), [[mean]])
        assertEqual(
            filtered(MPSImageStatisticsMeanAndVariance(device: device), image, width: 2, height: 1), [[mean, variance]])
        assertEqual(
            filtered(MPSImageStatisticsMinAndMax(device: device), image, width: 2, height: 1),
            [[all.reduce(SIMD4(repeating: 9), pointwiseMin), all.reduce(SIMD4(repeating: -9), pointwiseMax)]])

        var info = MPSImageHistogramInfo(
            numberOfHistogramEntries: 16, histogramForAlpha: false, minPixelValue: SIMD4(repeating: 0),
            maxPixelValue: SIMD4(repeating: 1))
        let histogram = MPSImageHistogram(device: device, histogramInfo: &info)
        XCTAssertEqual(histogram.histogramSize(forSourceFormat: .rgba32Float), 192)
        let counts = device.makeBuffer(length: 256)!, source = texture(image)
        run { histogram.encode(to: $0, sourceTexture: source, histogram: counts, histogramOffset: 64) }
        var expected = [UInt32](repeating: 0, count: 48)
        for value in all { for c in 0..<3 { expected[16 * c + min(Int(value[c] * 16), 15)] += 1 } }
        let found = counts.contents().advanced(by: 64).assumingMemoryBound(to: UInt32.self)
        XCTAssertEqual(Array(UnsafeBufferPointer(start: found, count: 48)), expected)
    }

    func testImagesOfMetalPerformanceShaders() {
        let descriptor = MPSImageDescriptor(channelFormat: .float16, width: 4, height: 3, featureChannels: 3)
        let image = MPSImage(device: device, imageDescriptor: descriptor)
        XCTAssertEqual(image.pixelFormat, .rgba16Float)
        let other = MPSImage(texture: texture(drawn(4, 3)), featureChannels: 4)
        run {
            let temporary = MPSTemporaryImage(commandBuffer: $0, imageDescriptor: descriptor)
            let box = MPSImageBox(device: device, kernelWidth: 1, kernelHeight: 1)
            box.encode(commandBuffer: $0, sourceImage: other, destinationImage: temporary)
            box.encode(commandBuffer: $0, sourceImage: temporary, destinationImage: image)
        }
    }
}
