import CoreGraphics
import CoreVideo
import XCTest

/// The parts of CoreGraphics and CoreVideo that compute packages use.
final class CoreTests: XCTestCase {
    func testTransforms() {
        let points = (0..<8).map { CGPoint(x: CGFloat($0 * 5 % 7), y: CGFloat($0 * 3 % 5)) }
        let first = CGAffineTransform(rotationAngle: .pi / 2), second = CGAffineTransform(2, 1, -1, 3, 4, -5)
        for point in points {
            let turned = point.applying(first)
            XCTAssertEqual(turned.x, -point.y, accuracy: 1e-12)
            XCTAssertEqual(turned.y, point.x, accuracy: 1e-12)
            let both = point.applying(first.concatenating(second)), inTurn = turned.applying(second)
            XCTAssertEqual(both.x, inTurn.x, accuracy: 1e-9)
            XCTAssertEqual(both.y, inTurn.y, accuracy: 1e-9)
            let back = inTurn.applying(second.inverted())
            XCTAssertEqual(back.x, turned.x, accuracy: 1e-9)
            XCTAssertEqual(back.y, turned.y, accuracy: 1e-9)
            let moved = point.applying(second.translatedBy(x: 1, y: 2))
            XCTAssertEqual(moved, CGPoint(x: point.x + 1, y: point.y + 2).applying(second))
        }
        XCTAssertTrue(second.concatenating(.identity) == second && CGAffineTransform.identity.isIdentity)
        XCTAssertEqual(CGSize(width: 1, height: 2).applying(second), CGSize(width: 0, height: 7))
    }

    func testPixelBuffers() throws {
        var made: CVPixelBuffer?
        let attributes = [kCVPixelBufferMetalCompatibilityKey: true] as CFDictionary
        XCTAssertEqual(
            CVPixelBufferCreate(kCFAllocatorDefault, 5, 3, kCVPixelFormatType_32BGRA, attributes, &made),
            kCVReturnSuccess)
        let buffer = try XCTUnwrap(made)
        XCTAssertNil(CVPixelBufferGetBaseAddress(buffer), "it is not locked")
        CVPixelBufferLockBaseAddress(buffer, [])
        let row = CVPixelBufferGetBytesPerRow(buffer), address = try XCTUnwrap(CVPixelBufferGetBaseAddress(buffer))
        XCTAssertTrue(row >= 20 && row * 3 == CVPixelBufferGetDataSize(buffer))
        address.storeBytes(of: 7, toByteOffset: 2 * row + 16, as: UInt32.self)
        XCTAssertEqual(address.load(as: UInt32.self), 0)
        CVPixelBufferUnlockBaseAddress(buffer, [])
        XCTAssertEqual(CVPixelBufferUnlockBaseAddress(buffer, .readOnly), kCVReturnError)
        XCTAssertEqual([CVPixelBufferGetWidth(buffer), CVPixelBufferGetHeight(buffer)], [5, 3])
        XCTAssertEqual(CVPixelBufferGetPixelFormatType(buffer), 0x4247_5241)
        XCTAssertEqual(CVPixelBufferCreate(nil, 0, 3, kCVPixelFormatType_32BGRA, nil, &made), kCVReturnInvalidSize)
        XCTAssertEqual(CVPixelBufferCreate(nil, 5, 3, 0x7934_3136, nil, &made), kCVReturnInvalidPixelFormat)
    }

    /// The planes of a video format, of a pool, with textures that share their memory.
    func testPlanes() throws {
        var made: CVPixelBufferPool?, buffer: CVPixelBuffer?, cache: CVMetalTextureCache?, texture: CVMetalTexture?
        let format = kCVPixelFormatType_420YpCbCr8BiPlanarVideoRange
        let attributes =
            [
                kCVPixelBufferPixelFormatTypeKey: format, kCVPixelBufferWidthKey: 7, kCVPixelBufferHeightKey: 5,
            ] as [CFString: Any]
        XCTAssertEqual(CVPixelBufferPoolCreate(nil, nil, attributes as CFDictionary, &made), kCVReturnSuccess)
        XCTAssertEqual(CVPixelBufferPoolCreatePixelBuffer(nil, try XCTUnwrap(made), &buffer), kCVReturnSuccess)
        let pixels = try XCTUnwrap(buffer)
        XCTAssertTrue(CVPixelBufferIsPlanar(pixels))
        XCTAssertEqual(CVPixelBufferGetPlaneCount(pixels), 2)
        let sizes = (0..<2).map {
            [CVPixelBufferGetWidthOfPlane(pixels, $0), CVPixelBufferGetHeightOfPlane(pixels, $0)]
        }
        XCTAssertEqual(sizes, [[7, 5], [4, 3]])
        CVPixelBufferLockBaseAddress(pixels, [])
        defer { CVPixelBufferUnlockBaseAddress(pixels, []) }
        let chroma = try XCTUnwrap(CVPixelBufferGetBaseAddressOfPlane(pixels, 1))
        XCTAssertNil(CVPixelBufferGetBaseAddressOfPlane(pixels, 2))
        let last = chroma + CVPixelBufferGetBytesPerRowOfPlane(pixels, 1) * 2
        last.storeBytes(of: 0x0907, toByteOffset: 6, as: UInt16.self)

        let device = MTLCreateSystemDefaultDevice()!
        CVMetalTextureCacheCreate(nil, nil, device, nil, &cache)
        let status = CVMetalTextureCacheCreateTextureFromImage(nil, cache!, pixels, nil, .rg8Unorm, 4, 3, 1, &texture)
        XCTAssertEqual(status, kCVReturnSuccess)
        var pixel: UInt16 = 0
        CVMetalTextureGetTexture(try XCTUnwrap(texture))!.getBytes(
            &pixel, bytesPerRow: 2, from: MTLRegionMake2D(3, 2, 1, 1), mipmapLevel: 0)
        XCTAssertEqual(pixel, 0x0907)
        XCTAssertEqual(
            CVMetalTextureCacheCreateTextureFromImage(nil, cache!, pixels, nil, .r8Unorm, 4, 3, 1, &texture),
            kCVReturnInvalidPixelFormat)

        CVBufferSetAttachment(
            pixels, kCVImageBufferYCbCrMatrixKey, kCVImageBufferYCbCrMatrix_ITU_R_709_2, .shouldPropagate)
        XCTAssertEqual(CVBufferCopyAttachment(pixels, kCVImageBufferYCbCrMatrixKey, nil) as? String, "ITU_R_709_2")
        var bytes = [UInt8](repeating: 5, count: 64)
        bytes.withUnsafeMutableBytes {
            let status = CVPixelBufferCreateWithBytes(
                nil, 4, 4, kCVPixelFormatType_32BGRA, $0.baseAddress!, 16, nil, nil, nil, &buffer)
            XCTAssertEqual(status, kCVReturnSuccess)
            let made = CVMetalTextureCacheCreateTextureFromImage(
                nil, cache!, buffer!, nil, .bgra8Unorm, 4, 4, 0, &texture)
            XCTAssertEqual(made, kCVReturnPixelBufferNotMetalCompatible)
        }
    }
}
