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
        XCTAssertEqual(CVPixelBufferCreate(nil, 5, 3, 0x3432_3076, nil, &made), kCVReturnInvalidPixelFormat)
    }
}
