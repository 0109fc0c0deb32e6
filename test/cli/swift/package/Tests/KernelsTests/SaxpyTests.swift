import Points
import XCTest

@testable import Kernels

final class SaxpyTests: XCTestCase {
    func testEveryElement() throws {
        XCTAssertEqual(try Saxpy()(factor: 2.5), (0..<100).map { 2.5 * Float($0) })
    }

    /// On a Mac, XCTest brings AppKit, and with it Metal and QuartzCore.
    func testXCTestBringsMetal() {
        XCTAssertNotNil(MTLCreateSystemDefaultDevice())
        XCTAssertGreaterThan(CACurrentMediaTime(), 0)
    }

    /// Its vectors come from <simd/simd.h>.
    func testAStructureOfC() {
        var point = Point(position: SIMD4(1, 2, 2, 0), size: SIMD2(1, 3))
        point.position.z *= 2
        XCTAssertEqual(point_length(&point), Float(21).squareRoot() * 10)
        XCTAssertEqual(MemoryLayout<Point>.stride, 32)
    }

    func testFactorIsAResource() throws { XCTAssertEqual(try Saxpy.factor(), 2.5) }
}
