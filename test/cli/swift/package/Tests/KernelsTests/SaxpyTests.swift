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

    func testFactorIsAResource() throws { XCTAssertEqual(try Saxpy.factor(), 2.5) }
}
