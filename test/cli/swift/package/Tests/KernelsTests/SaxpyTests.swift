import XCTest

@testable import Kernels

final class SaxpyTests: XCTestCase {
    func testEveryElement() throws {
        XCTAssertEqual(try Saxpy()(factor: 2.5), (0..<100).map { 2.5 * Float($0) })
    }

    func testFactorIsAResource() throws { XCTAssertEqual(try Saxpy.factor(), 2.5) }
}
