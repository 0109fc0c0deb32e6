import Metal
import XCTest

final class DeviceTests: MetalTestCase {
    func testItIsOneDeviceThatSaysWhatItIs() {
        XCTAssertTrue(MTLCreateSystemDefaultDevice() === device)
        XCTAssertEqual(MTLCopyAllDevices().count, 1)
        XCTAssertEqual(device.name, "Apple M1 (software)")
        XCTAssertEqual(device.architecture.name, "applegpu_g13g")
    }

    /// From the Metal Feature Set Tables, for an M1.
    func testLimitsAndFamilies() {
        XCTAssertEqual(device.maxThreadsPerThreadgroup.width, 1024)
        XCTAssertEqual(device.maxThreadgroupMemoryLength, 32768)
        XCTAssertTrue(device.hasUnifiedMemory)
        XCTAssertEqual(device.argumentBuffersSupport, .tier2)
        XCTAssertGreaterThan(device.recommendedMaxWorkingSetSize, 0)
        XCTAssertLessThanOrEqual(UInt64(device.maxBufferLength), device.recommendedMaxWorkingSetSize)
        for family: MTLGPUFamily in [.apple1, .apple7, .mac2, .common3, .metal3] {
            XCTAssertTrue(device.supportsFamily(family), "\(family)")
        }
        for family: MTLGPUFamily in [.apple8, .apple9] { XCTAssertFalse(device.supportsFamily(family), "\(family)") }
    }

    func testCapturesAreRefused() {
        let manager = MTLCaptureManager.shared(), descriptor = MTLCaptureDescriptor()
        XCTAssertFalse(manager.supportsDestination(.gpuTraceDocument))
        XCTAssertFalse(manager.supportsDestination(.developerTools))
        XCTAssertThrowsError(try manager.startCapture(with: descriptor)) {
            XCTAssertEqual(($0 as? MTLCaptureError)?.code, .invalidDescriptor)
        }
        descriptor.captureObject = device
        descriptor.destination = .gpuTraceDocument
        XCTAssertThrowsError(try manager.startCapture(with: descriptor)) {
            XCTAssertEqual(($0 as? MTLCaptureError)?.code, .notSupported)
            XCTAssertTrue($0.localizedDescription.contains("macOS"))
        }
        XCTAssertFalse(manager.isCapturing)
        let scope = manager.makeCaptureScope(commandQueue: queue)
        scope.begin()
        scope.end()
        XCTAssertTrue(scope.commandQueue === queue)
    }

    func testWhatIsNotHereIsRefusedByName() {
        XCTAssertThrowsError(try device.makeLogState(descriptor: MTLLogStateDescriptor())) {
            XCTAssertEqual(($0 as NSError).domain, MTLLogStateErrorDomain)
        }
        XCTAssertThrowsError(try device.makeDynamicLibrary(url: URL(fileURLWithPath: "/nowhere"))) {
            XCTAssertEqual(($0 as? MTLDynamicLibraryError)?.code, .invalidFile)
        }
        XCTAssertThrowsError(try device.makeLibrary(URL: URL(fileURLWithPath: "/nowhere.metallib"))) {
            XCTAssertEqual(($0 as? MTLLibraryError)?.code, .fileNotFound)
        }
        XCTAssertNil(device.makeDefaultLibrary())
        XCTAssertThrowsError(try device.makeLibrary(data: DispatchData.empty)) {
            XCTAssertEqual(($0 as? MTLLibraryError)?.code, .unsupported)
            XCTAssertTrue($0.localizedDescription.contains("makeLibrary(source:options:)"))
        }
    }

    func testSizes() {
        let region = MTLRegionMake2D(1, 2, 3, 4)
        XCTAssertEqual([region.origin.x, region.origin.y, region.origin.z], [1, 2, 0])
        XCTAssertEqual([region.size.width, region.size.height, region.size.depth], [3, 4, 1])
        XCTAssertEqual(MTLRegionMake1D(5, 6).size.height, 1)
        XCTAssertEqual(MemoryLayout<MTLDispatchThreadgroupsIndirectArguments>.size, 12)
    }
}
