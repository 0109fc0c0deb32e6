import Metal
import MetalRuntime
import XCTest

final class MemoryTests: MetalTestCase {
    func testBuffers() {
        let made = device.makeBuffer(length: 100, options: [.storageModePrivate, .hazardTrackingModeUntracked])!
        XCTAssertEqual(made.length, 100)
        XCTAssertEqual(made.storageMode, .private)
        XCTAssertEqual(made.hazardTrackingMode, .untracked)
        XCTAssertEqual(made.resourceOptions, [.storageModePrivate, .hazardTrackingModeUntracked])
        XCTAssertEqual(made.allocatedSize, 16384)
        XCTAssertNil(made.heap)
        XCTAssertTrue(made.device === device)
        XCTAssertEqual(device.makeBuffer(length: 4)!.hazardTrackingMode, .tracked)
        let copied = buffer([1, 2, 3])
        XCTAssertEqual(floats(copied), [1, 2, 3])
        XCTAssertEqual(copied.gpuAddress, UInt64(UInt(bitPattern: copied.contents())))
    }

    func testFreshMemoryIsPoisonInTestsAndZeroElsewhere() {
        let fresh = device.makeBuffer(length: 64)!
        XCTAssertTrue(floats(fresh).allSatisfy(\.isNaN), "fresh memory must be poison")
        mrt_setting_set("poison", "auto", nil)
        defer { mrt_setting_set("poison", "1", nil) }
        XCTAssertEqual(floats(device.makeBuffer(length: 64)!), [Float](repeating: 0, count: 16))
    }

    /// Under the checker, reading unwritten memory is a finding, and gives zero nevertheless: for the kernel and for
    /// the host.
    func testUnwrittenMemoryReadsAsZeroUnderTheChecker() throws {
        mrt_setting_set("poison", "auto", nil)
        mrt_setting_set("check", "1", nil)
        defer {
            mrt_setting_set("poison", "1", nil)
            mrt_setting_set("check", "0", nil)
        }
        let x = device.makeBuffer(length: 16)!, y = device.makeBuffer(length: 32)!
        x.contents().storeBytes(of: 3, as: Float.self)
        let state = try pipeline("twice")
        run { encoder in
            encoder.setComputePipelineState(state)
            encoder.setBuffers([x, y], offsets: [0, 0], range: 0..<2)
            encoder.dispatchThreads(MTLSizeMake(2, 1, 1), threadsPerThreadgroup: one)
        }
        XCTAssertEqual(floats(y), [6, 0, 0, 0, 0, 0, 0, 0])
        XCTAssertEqual(floats(x), [3, 0, 0, 0])
        let json = mrt_findings_json(true)!
        defer { mrt_string_free(json) }
        XCTAssertTrue(String(cString: json).contains("uninitialized-read"), String(cString: json))
    }

    func testBytesNoCopyIsHandedBack() {
        let page = 16384, log = Log()
        let memory = UnsafeMutableRawPointer.allocate(byteCount: page, alignment: page)
        do {
            let wrapped = device.makeBuffer(bytesNoCopy: memory, length: page, options: []) { pointer, length in
                log.add("\(pointer == memory) \(length)")
                pointer.deallocate()
            }
            XCTAssertEqual(wrapped?.contents(), memory)
            XCTAssertEqual(log.entries, [])
        }
        XCTAssertEqual(log.entries, ["true 16384"])
    }

    func testAllocatedSizeFollowsBuffers() {
        let before = device.currentAllocatedSize
        do {
            let held = device.makeBuffer(length: 1 << 20)
            XCTAssertGreaterThanOrEqual(device.currentAllocatedSize, before + 1 << 20)
            withExtendedLifetime(held) {}
        }
        XCTAssertEqual(device.currentAllocatedSize, before)
    }

    func testBlitsBetweenModes() {
        let source = buffer([1, 2, 3, 4]), secret = device.makeBuffer(length: 16, options: .storageModePrivate)!
        let target = buffer([0, 0, 0, 0])
        let commands = queue.makeCommandBuffer()!
        let encoder = commands.makeBlitCommandEncoder(descriptor: MTLBlitPassDescriptor())!
        encoder.copy(from: source, sourceOffset: 4, to: secret, destinationOffset: 0, size: 12)
        encoder.fill(buffer: secret, range: 12..<16, value: 0)
        encoder.copy(from: secret, sourceOffset: 0, to: target, destinationOffset: 0, size: 16)
        encoder.endEncoding()
        commands.commit()
        commands.waitUntilCompleted()
        XCTAssertEqual(floats(target), [2, 3, 4, 0])
    }

    func testPurgeableMemoryIsForgotten() {
        let held = buffer([1, 2])
        XCTAssertEqual(held.setPurgeableState(.keepCurrent), .nonVolatile)
        XCTAssertEqual(held.setPurgeableState(.empty), .nonVolatile)
        XCTAssertEqual(held.setPurgeableState(.nonVolatile), .empty)
        XCTAssertTrue(floats(held).allSatisfy(\.isNaN))
    }

    func testAutomaticHeaps() throws {
        let heap = try heap(.automatic)
        XCTAssertEqual(heap.hazardTrackingMode, .untracked, "heaps are untracked by default")
        XCTAssertEqual(heap.maxAvailableSize(alignment: 256), 4096)
        var first: (any MTLBuffer)? = heap.makeBuffer(length: 1000)
        let second = try XCTUnwrap(heap.makeBuffer(length: 256))
        XCTAssertEqual(first?.heapOffset, 0)
        XCTAssertEqual(second.heapOffset, 1024)
        XCTAssertTrue(second.heap === heap)
        XCTAssertEqual(heap.usedSize, 1280)
        XCTAssertEqual(heap.maxAvailableSize(alignment: 256), 2816)
        XCTAssertEqual(heap.maxAvailableSize(alignment: 2048), 2048)
        XCTAssertNil(heap.makeBuffer(length: 3000), "a full heap answers nil")
        first = nil
        XCTAssertEqual(heap.usedSize, 256)
        XCTAssertEqual(heap.makeBuffer(length: 512)?.heapOffset, 0, "a stretch that is free again is used again")
    }

    func testMakingAliasable() throws {
        let heap = try heap(.automatic)
        let old = try XCTUnwrap(heap.makeBuffer(length: 4096))
        XCTAssertNil(heap.makeBuffer(length: 256))
        XCTAssertFalse(old.isAliasable())
        old.makeAliasable()
        old.makeAliasable()
        XCTAssertTrue(old.isAliasable())
        let new = try XCTUnwrap(heap.makeBuffer(length: 4096))
        XCTAssertEqual(new.contents(), old.contents())
        XCTAssertEqual(heap.usedSize, 4096)
    }

    func testPlacementHeapsAlias() throws {
        let heap = try heap(.placement)
        let whole = try XCTUnwrap(heap.makeBuffer(length: 4096, options: [], offset: 0))
        let part = try XCTUnwrap(heap.makeBuffer(length: 256, options: [], offset: 512))
        XCTAssertEqual(part.contents(), whole.contents() + 512)
        XCTAssertEqual(part.heapOffset, 512)
    }

    func testHeapSizes() {
        let needed = device.heapBufferSizeAndAlign(length: 1000)
        XCTAssertEqual(needed.size, 1024)
        XCTAssertEqual(needed.align, 256)
    }

    func testResidencySets() throws {
        let descriptor = MTLResidencySetDescriptor()
        descriptor.label = "weights"
        let set = try device.makeResidencySet(descriptor: descriptor), held = buffer([1])
        set.addAllocations([held, held])
        XCTAssertEqual(set.allocationCount, 1)
        XCTAssertEqual(set.allocatedSize, 0, "nothing counts before commit()")
        set.commit()
        XCTAssertEqual(set.allocatedSize, 16384)
        XCTAssertTrue(set.containsAllocation(held))
        queue.addResidencySet(set)
        set.removeAllAllocations()
        set.commit()
        XCTAssertEqual(set.allocatedSize, 0)
    }

    private func heap(_ type: MTLHeapType) throws -> any MTLHeap {
        let descriptor = MTLHeapDescriptor()
        descriptor.size = 4096
        descriptor.type = type
        descriptor.storageMode = .shared
        return try XCTUnwrap(device.makeHeap(descriptor: descriptor))
    }
}
