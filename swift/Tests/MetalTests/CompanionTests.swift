import Accelerate
import MetalKit
import QuartzCore
import XCTest
import Orchardos
import simd

/// The modules besides Metal, compared with numbers computed by hand.
final class CompanionTests: XCTestCase {
    func testVectors() {
        let a = SIMD3<Float>(2, 3, 6), b = simd_float3(1, 0, 0)
        XCTAssertEqual(simd_length(a), 7)
        XCTAssertEqual(dot(a, b), 2)
        XCTAssertEqual(cross(b, SIMD3(0, 1, 0)), SIMD3(0, 0, 1))
        XCTAssertEqual(simd_normalize(a), a / 7)
        XCTAssertEqual(distance(SIMD2<Double>(1, 1), SIMD2(4, 5)), 5)
        XCTAssertEqual(reflect(SIMD2<Float>(1, -1), n: SIMD2(0, 1)), SIMD2(1, 1))
        XCTAssertEqual(simd_clamp(a, SIMD3(repeating: 2.5), SIMD3(repeating: 4)), SIMD3(2.5, 3, 4))
        XCTAssertEqual(mix(SIMD2<Float>(0, 2), SIMD2(4, 4), t: 0.25), SIMD2(1, 2.5))
        XCTAssertEqual(smoothstep(SIMD2<Float>(0.5, 2), edge0: SIMD2(), edge1: SIMD2(1, 1)), SIMD2(0.5, 1))
        XCTAssertEqual(step(SIMD2<Float>(1, 3), edge: SIMD2(2, 2)), SIMD2(0, 1))
        XCTAssertEqual(simd_abs(SIMD2<Float>(-1, 2)), SIMD2(1, 2))
        XCTAssertEqual(fract(SIMD2<Float>(-0.25, 2.5)), SIMD2(0.75, 0.5))
        XCTAssertEqual(MemoryLayout<simd_float3>.stride, 16)
    }

    func testMatrices() {
        let rows: [SIMD3<Double>] = [SIMD3(0, 2, 1), SIMD3(1, 3, 2), SIMD3(1, 1, 2)]
        let m = simd_double3x3(rows: rows)
        XCTAssertEqual(m[0], SIMD3(0, 1, 1))
        XCTAssertEqual(m[1, 2], 1)
        XCTAssertEqual(m.determinant, -2, accuracy: 1e-14)  // 0(6 - 2) - 2(2 - 2) + 1(1 - 3)
        let k = simd_double2x2(SIMD2(4, 2), SIMD2(7, 6))  // rows 4 7, 2 6
        XCTAssertEqual(simd_determinant(k), 10, accuracy: 1e-14)
        let inverse = simd_inverse(k)
        XCTAssertEqual(inverse[0, 0], 0.6, accuracy: 1e-15)
        XCTAssertEqual(inverse[1, 0], -0.7, accuracy: 1e-15)
        let v = SIMD2<Double>(1, 10)
        XCTAssertEqual(k * v, SIMD2(74, 62))
        XCTAssertEqual(v * k, SIMD2(24, 67))
        XCTAssertEqual(matrix_multiply(k, k), simd_double2x2(SIMD2(30, 20), SIMD2(70, 50)))
        XCTAssertEqual(simd_transpose(k), simd_double2x2(SIMD2(4, 7), SIMD2(2, 6)))
        let three: float4x4 = matrix_identity_float4x4 * float4x4(3)
        XCTAssertEqual(three, float4x4(diagonal: SIMD4(repeating: 3)))
        XCTAssertEqual(MemoryLayout<matrix_float4x4>.stride, 64)
    }

    func testWhatIsLeft() throws {
        let before = CACurrentMediaTime()
        XCTAssertGreaterThanOrEqual(CACurrentMediaTime(), before)
        XCTAssertEqual(vDSP.sum([1.0, 2.0, 4.0]), 7)
        XCTAssertEqual(vDSP.multiply(2, [1.0, 3.0]), [2, 6])
        var product = [Float](repeating: 0, count: 4)
        vDSP_mmul([1, 2, 3, 4], 1, [5, 6, 7, 8], 1, &product, 1, 2, 2, 2)
        XCTAssertEqual(product, [19, 22, 43, 50])
        let counter = OSAllocatedUnfairLock(initialState: 1)
        XCTAssertEqual(
            counter.withLock {
                $0 += 1; return $0
            }, 2)
        let message: OSLogMessage = "value \(3, privacy: .public)"
        Logger(subsystem: "tests", category: "modules").debug(message)
        let loader = MTKTextureLoader(device: MTLCreateSystemDefaultDevice()!)
        XCTAssertThrowsError(try loader.newTexture(data: Data("no picture".utf8))) {
            XCTAssertTrue($0.localizedDescription.hasPrefix("MTKTextureLoader: "), $0.localizedDescription)
        }
    }

    func testUnfairLocks() {
        final class Counter: @unchecked Sendable {
            var lock = os_unfair_lock(), total = 0
        }
        let counter = Counter(), allocated = OSAllocatedUnfairLock(initialState: 0), plain = OSAllocatedUnfairLock()
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            for _ in 0..<1000 {
                os_unfair_lock_lock(&counter.lock)
                counter.total += 1
                os_unfair_lock_unlock(&counter.lock)
                allocated.withLock { $0 += 1 }
            }
        }
        XCTAssertEqual([counter.total, allocated.withLock { $0 }], [8000, 8000])
        XCTAssertTrue(os_unfair_lock_trylock(&counter.lock))
        os_unfair_lock_assert_owner(&counter.lock)
        XCTAssertFalse(os_unfair_lock_trylock(&counter.lock))
        plain.lock()
        XCTAssertFalse(plain.lockIfAvailable())
        plain.unlock()
        XCTAssertEqual(plain.withLock { 3 }, 3)
        XCTAssertEqual(allocated.withLockIfAvailable { $0 }, 8000)
    }

    func testMessagesAreFormatted() {
        func text(_ message: OSLogMessage) -> String { "\(message)" }
        let hex = OSLogIntegerFormatting.hex(includePrefix: true)
        XCTAssertEqual(text("\(2.0 / 3, format: .fixed(precision: 2)) \(255, format: hex)"), "0.67 0xff")
        XCTAssertEqual(text("[\("ab", align: .left(columns: 4), privacy: .private(mask: .hash))]"), "[ab  ]")
        XCTAssertEqual(text("[\(7, format: .decimal, align: .right(columns: 3))]"), "[  7]")
        XCTAssertTrue(OSLog(subsystem: "tests", category: .pointsOfInterest).isEnabled(type: .error))
        XCTAssertFalse(OSLog.disabled.isEnabled(type: .error))
    }

    /// Signposts are not recorded, and their bodies run.
    func testSignposts() {
        let signposter = OSSignposter(subsystem: "tests", category: "signposts")
        let state = signposter.beginInterval("work", id: signposter.makeSignpostID(), "of \(3) parts")
        signposter.emitEvent("part")
        XCTAssertEqual(signposter.withIntervalSignpost("part") { 5 }, 5)
        signposter.endInterval("work", state)
        XCTAssertFalse(signposter.isEnabled)
        os_signpost(.begin, log: .default, name: "older", "%d parts", 3)
    }
}
