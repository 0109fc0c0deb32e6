import Accelerate
import IOSurface
import MetalPerformanceShaders
import XCTest

/// Conversions of vImage, surfaces, and names of networks.
final class VImageTests: MetalTestCase {
    private var draws = Draws(state: 5)

    /// Runs a conversion of `source`, 5 pixels wide with padded rows, and returns the result without padding.
    private func converted<A, B>(
        _ source: [A], size: Int = 1, to empty: B,
        _ convert: (UnsafePointer<vImage_Buffer>, UnsafePointer<vImage_Buffer>) -> vImage_Error
    ) -> [B] {
        let rows = source.count / (5 * size), (a, b) = (MemoryLayout<A>.size, MemoryLayout<B>.size)
        var from: [A] = []
        for row in 0..<rows {
            from += source[row * 5 * size..<(row + 1) * 5 * size]
            from += [source[0], source[0]]
        }
        var result = [B](repeating: empty, count: rows * (5 * size + 3))
        from.withUnsafeMutableBytes { from in
            result.withUnsafeMutableBytes { result in
                var src = vImage_Buffer(
                    data: from.baseAddress!, height: UInt(rows), width: 5, rowBytes: (5 * size + 2) * a)
                var dest = vImage_Buffer(
                    data: result.baseAddress!, height: UInt(rows), width: 5, rowBytes: (5 * size + 3) * b)
                XCTAssertEqual(convert(&src, &dest), kvImageNoError)
                dest.height += 1
                XCTAssertEqual(convert(&src, &dest), kvImageRoiLargerThanInputBuffer)
            }
        }
        var dense: [B] = []
        for row in 0..<rows { dense += result[row * (5 * size + 3)..<row * (5 * size + 3) + 5 * size] }
        return dense
    }

    func testPlanes() {
        let values = (0..<15).map { _ in Float(draws.number()) }
        let halves = converted(values, to: UInt16(0)) { vImageConvert_PlanarFtoPlanar16F($0, $1, 0) }
        let back = converted(halves, to: Float(0)) { vImageConvert_Planar16FtoPlanarF($0, $1, 0) }
        for (x, y) in zip(values, back) { XCTAssertEqual(x, y, accuracy: abs(x) / 2048 + 1e-7) }
        let bytes = converted(values, to: UInt8(0)) { vImageConvert_PlanarFtoPlanar8($0, $1, 1, -1, 0) }
        let floats = converted(bytes, to: Float(0)) { vImageConvert_Planar8toPlanarF($0, $1, 1, -1, 0) }
        for (i, value) in values.enumerated() {
            let expected = (min(max((Double(value) + 1) / 2, 0), 1) * 255).rounded()
            XCTAssertEqual(Double(bytes[i]), expected, accuracy: 1e-9)
            XCTAssertEqual(Double(floats[i]), expected / 255 * 2 - 1, accuracy: 1e-6)
        }
    }

    func testChannels() {
        let pixels = (0..<40).map { _ in UInt8((draws.number() + 2) * 63) }
        let turned = converted(pixels, size: 4, to: UInt8(0)) {
            vImagePermuteChannels_ARGB8888($0, $1, [2, 1, 0, 3], 0)
        }
        let multiplied = converted(pixels, size: 4, to: UInt8(0)) { vImagePremultiplyData_RGBA8888($0, $1, 0) }
        let divided = converted(multiplied, size: 4, to: UInt8(0)) { vImageUnpremultiplyData_RGBA8888($0, $1, 0) }
        for i in 0..<10 {
            let alpha = Double(pixels[4 * i + 3]) / 255
            XCTAssertEqual(turned[4 * i + 3], pixels[4 * i + 3])
            for c in 0..<3 {
                let value = Double(pixels[4 * i + c])
                XCTAssertEqual(turned[4 * i + c], pixels[4 * i + 2 - c])
                XCTAssertEqual(Double(multiplied[4 * i + c]), value * alpha, accuracy: 0.51)
                let step: Double = alpha == 0 ? 255 : 0.51 / alpha + 0.51
                XCTAssertEqual(Double(divided[4 * i + c]), value, accuracy: step)
            }
        }
    }

    func testSurfacesShareTheirMemoryWithTextures() throws {
        let properties: [IOSurfacePropertyKey: Any] = [
            .width: 5, .height: 3, .bytesPerElement: 4, .pixelFormat: 0x4247_5241,
        ]
        let surface = try XCTUnwrap(IOSurface(properties: properties))
        XCTAssertNil(IOSurface(properties: [.width: 5]))
        XCTAssertEqual([IOSurfaceGetWidthOfPlane(surface, 0), IOSurfaceGetHeightOfPlane(surface, 0)], [5, 3])
        let descriptor = MTLTextureDescriptor.texture2DDescriptor(
            pixelFormat: .r32Float, width: 5, height: 3, mipmapped: false)
        let texture = try XCTUnwrap(device.makeTexture(descriptor: descriptor, iosurface: surface, plane: 0))
        surface.lock()
        (surface.baseAddress + 2 * surface.bytesPerRow + 12).storeBytes(of: 2.5, as: Float.self)
        surface.unlock()
        var pixel: Float = 0
        texture.getBytes(&pixel, bytesPerRow: 4, from: MTLRegionMake2D(3, 2, 1, 1), mipmapLevel: 0)
        XCTAssertEqual(pixel, 2.5)
    }

    func testPaddingRules() {
        final class Rule: NSObject, MPSNNPadding {
            func paddingMethod() -> MPSNNPaddingMethod { [.custom] }
            static let supportsSecureCoding = true
            func encode(with coder: NSCoder) {}
            override init() {}
            init?(coder: NSCoder) { nil }
        }
        XCTAssertEqual(Rule().paddingMethod(), .custom)
        XCTAssertEqual(Rule().label(), "")
    }
}
