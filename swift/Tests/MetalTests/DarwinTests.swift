import Glibc
import Metal
import OrchardCommonCrypto
import XCTest

/// The names of Darwin, which Metal re-exports as on Apple's systems.
final class DarwinTests: XCTestCase {
    func testClocksInNanoseconds() {
        let before = mach_absolute_time(), now = clock_gettime_nsec_np(CLOCK_UPTIME_RAW), after = mach_absolute_time()
        XCTAssertTrue(before <= now && now <= after, "\(before) \(now) \(after)")
        XCTAssertGreaterThan(clock_gettime_nsec_np(CLOCK_REALTIME), 1_700_000_000 * NSEC_PER_SEC)
        XCTAssertEqual(vm_page_size % UInt(sysconf(Int32(_SC_PAGESIZE))), 0)
    }

    func testSinesAndCosinesTogether() {
        for x in [-7.25, -0.5, 0, 0.3, 1, 2.5, 1e9] {
            XCTAssertEqual(__sincos_stret(x).__sinval, sin(x))
            XCTAssertEqual(__sincosf_stret(Float(x)).__cosval, cos(Float(x)))
        }
        XCTAssertEqual(__sincospi_stret(1e15 + 1).__sinval, 0)
        XCTAssertEqual(__sincospi_stret(1e15 + 1).__cosval, -1)
        XCTAssertEqual(__sincospi_stret(-0.5).__sinval, -1)
        XCTAssertEqual(__sincospif_stret(0.25).__cosval, Float(0.5).squareRoot(), accuracy: 1e-7)
        XCTAssertTrue(__sincospi_stret(.infinity).__cosval.isNaN)
    }

    func testTheFileOfAFunction() {
        var info = Dl_info()
        let free: @convention(c) (UnsafeMutableRawPointer?) -> Void = Glibc.free
        XCTAssertNotEqual(dladdr(unsafeBitCast(free, to: UnsafeRawPointer.self), &info), 0)
        XCTAssertTrue(String(cString: info.dli_fname).contains("/"))
        XCTAssertEqual(dladdr(nil, &info), 0)
    }

    func testClocks() {
        var base = mach_timebase_info_data_t()
        XCTAssertEqual(mach_timebase_info(&base), KERN_SUCCESS)
        let before = mach_absolute_time()
        usleep(2000)
        let elapsed = (mach_absolute_time() - before) * UInt64(base.numer) / UInt64(base.denom)
        XCTAssertGreaterThanOrEqual(elapsed, 2_000_000)
        XCTAssertGreaterThanOrEqual(mach_continuous_time(), before)
    }

    func testMemoryOfTheProgram() {
        var info = mach_task_basic_info(), count = mach_msg_type_number_t(MemoryLayout<mach_task_basic_info>.size) / 4
        func ask(_ flavor: Int32) -> kern_return_t {
            withUnsafeMutablePointer(to: &info) {
                $0.withMemoryRebound(to: integer_t.self, capacity: Int(count)) {
                    task_info(mach_task_self_, task_flavor_t(flavor), $0, &count)
                }
            }
        }
        XCTAssertEqual(ask(MACH_TASK_BASIC_INFO), KERN_SUCCESS)
        XCTAssertGreaterThan(info.resident_size, 1 << 20)
        XCTAssertGreaterThanOrEqual(info.virtual_size, info.resident_size)
        XCTAssertNotEqual(ask(99), KERN_SUCCESS)
        count = 2
        XCTAssertNotEqual(ask(MACH_TASK_BASIC_INFO), KERN_SUCCESS)
    }

    func testNamesOfTheMachine() {
        var processors: Int32 = 0, size = MemoryLayout<Int32>.size
        XCTAssertEqual(sysctlbyname("hw.ncpu", &processors, &size, nil, 0), 0)
        XCTAssertEqual(Int(processors), ProcessInfo.processInfo.activeProcessorCount)
        XCTAssertEqual(sysctlbyname("hw.machine", nil, &size, nil, 0), 0)
        var machine = [CChar](repeating: 0, count: size)
        XCTAssertEqual(sysctlbyname("hw.machine", &machine, &size, nil, 0), 0)
        XCTAssertFalse(String(cString: machine).isEmpty)
        size = 1
        XCTAssertEqual(sysctlbyname("hw.machine", &machine, &size, nil, 0), -1)
        XCTAssertEqual([sysctlbyname("hw.unknown", nil, nil, nil, 0), errno], [-1, ENOENT])
    }
}

/// The examples of FIPS 180 and RFC 1321.
final class CommonCryptoTests: XCTestCase {
    func testDigests() {
        func hex(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }
        let text = Array("abc".utf8)
        var short = [UInt8](repeating: 0, count: Int(CC_MD5_DIGEST_LENGTH))
        CC_MD5(text, CC_LONG(text.count), &short)
        XCTAssertEqual(hex(short), "900150983cd24fb0d6963f7d28e17f72")
        short = [UInt8](repeating: 0, count: Int(CC_SHA1_DIGEST_LENGTH))
        CC_SHA1(text, CC_LONG(text.count), &short)
        XCTAssertEqual(hex(short), "a9993e364706816aba3e25717850c26c9cd0d89d")
        var digest = [UInt8](repeating: 0, count: Int(CC_SHA256_DIGEST_LENGTH))
        CC_SHA256(text, CC_LONG(text.count), &digest)
        XCTAssertEqual(hex(digest), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        var long = [UInt8](repeating: 0, count: Int(CC_SHA512_DIGEST_LENGTH))
        XCTAssertNotNil(CC_SHA512(text, CC_LONG(text.count), &long))
        XCTAssertEqual(hex(long).prefix(32), "ddaf35a193617abacc417349ae204131")
        XCTAssertEqual(hex(long).suffix(16), "2a9ac94fa54ca49f")
    }

    func testAutoreleasePools() throws {
        XCTAssertEqual(autoreleasepool { 3 }, 3)
        XCTAssertThrowsError(try autoreleasepool { throw CocoaError(.fileNoSuchFile) })
    }
}
