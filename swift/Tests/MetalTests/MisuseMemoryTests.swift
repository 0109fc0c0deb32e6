import Metal
import XCTest

final class MisuseMemoryTests: MetalTestCase {
    func testBufferLengths() {
        assertMisuse("Cannot create buffer of zero length") { XCTAssertNil(device.makeBuffer(length: 0)) }
        assertMisuse("Cannot create buffer of zero length") { XCTAssertNil(device.makeBuffer(bytes: [1], length: 0)) }
        let limit = device.maxBufferLength
        assertMisuse("must be <= [device maxBufferLength](\(limit))") {
            XCTAssertNil(device.makeBuffer(length: limit + 1))
        }
        XCTAssertNotNil(device.makeBuffer(length: 1))
    }

    func testOptions() {
        assertMisuse("not valid MTLResourceOptions") {
            XCTAssertNil(device.makeBuffer(length: 4, options: MTLResourceOptions(rawValue: 1 << 12)))
        }
        assertMisuse("MTLStorageModeMemoryless") {
            XCTAssertNil(device.makeBuffer(length: 4, options: .storageModeMemoryless))
        }
        assertMisuse("MTLStorageModePrivate") {
            XCTAssertNil(device.makeBuffer(bytes: [1, 2], length: 8, options: .storageModePrivate))
        }
    }

    func testContentsOfPrivateMemory() {
        let secret = device.makeBuffer(length: 16, options: .storageModePrivate)!
        assertMisuse("contents of a buffer with MTLStorageModePrivate must not be used") { _ = secret.contents() }
        _ = device.makeBuffer(length: 16, options: .storageModeManaged)!.contents()
    }

    func testBytesNoCopyWantsPages() {
        let page = 16384
        let memory = UnsafeMutableRawPointer.allocate(byteCount: 3 * page, alignment: page)
        defer { memory.deallocate() }
        assertMisuse("is not \(page) byte aligned") {
            XCTAssertNil(device.makeBuffer(bytesNoCopy: memory + 64, length: page))
        }
        assertMisuse("must be a multiple of \(page)") {
            XCTAssertNil(device.makeBuffer(bytesNoCopy: memory, length: page + 4))
        }
        XCTAssertEqual(device.makeBuffer(bytesNoCopy: memory, length: page)?.contents(), memory)
    }

    func testAQueueTakes32ResidencySets() throws {
        let sets = try (0..<33).map { _ in try device.makeResidencySet(descriptor: MTLResidencySetDescriptor()) }
        queue.addResidencySets(Array(sets[..<32]))
        queue.addResidencySet(sets[0])
        assertMisuse("at most 32 residency sets") { queue.addResidencySet(sets[32]) }
        queue.removeResidencySet(sets[5])
        queue.addResidencySet(sets[32])
    }

    func testDidModifyRange() {
        let shared = buffer([1, 2]), managed = buffer([1, 2], options: .storageModeManaged)
        assertMisuse("MTLStorageModeManaged") { shared.didModifyRange(0..<8) }
        assertMisuse("must be <= [buffer length](8)") { managed.didModifyRange(4..<12) }
        managed.didModifyRange(0..<8)
        assertMisuse("must lie inside the buffer's length(8)") { shared.addDebugMarker("tail", range: 4..<12) }
    }

    func testHeapDescriptors() {
        let descriptor = MTLHeapDescriptor()
        assertMisuse("Heap size must be greater than 0") { XCTAssertNil(device.makeHeap(descriptor: descriptor)) }
        descriptor.size = 4096
        descriptor.storageMode = .managed
        assertMisuse("must be MTLStorageModeShared or MTLStorageModePrivate") {
            XCTAssertNil(device.makeHeap(descriptor: descriptor))
        }
        descriptor.storageMode = .private
        descriptor.type = .sparse
        assertMisuse("sparse heaps") { XCTAssertNil(device.makeHeap(descriptor: descriptor)) }
        descriptor.type = .automatic
        XCTAssertNotNil(device.makeHeap(descriptor: descriptor))
    }

    func testHeapBuffersFollowTheirHeap() {
        let heap = makeHeap(.automatic)
        assertMisuse("storage mode (shared) must be the heap's (private)") { XCTAssertNil(heap.makeBuffer(length: 64)) }
        assertMisuse("CPU cache mode") {
            XCTAssertNil(heap.makeBuffer(length: 64, options: [.storageModePrivate, .cpuCacheModeWriteCombined]))
        }
        assertMisuse("MTLHazardTrackingModeTracked") {
            XCTAssertNil(heap.makeBuffer(length: 64, options: [.storageModePrivate, .hazardTrackingModeTracked]))
        }
        assertMisuse("zero length") { XCTAssertNil(heap.makeBuffer(length: 0, options: .storageModePrivate)) }
        assertMisuse("power of two") { _ = heap.maxAvailableSize(alignment: 3) }
        assertMisuse("an automatic heap chooses the offset") {
            XCTAssertNil(heap.makeBuffer(length: 64, options: .storageModePrivate, offset: 0))
        }
        let part = heap.makeBuffer(length: 64, options: .storageModePrivate)!
        assertMisuse("no purgeable state of its own") { part.setPurgeableState(.volatile) }
    }

    func testPlacement() {
        let heap = makeHeap(.placement)
        assertMisuse("needs an offset") { XCTAssertNil(heap.makeBuffer(length: 64, options: .storageModePrivate)) }
        assertMisuse("must be a multiple of 256") {
            XCTAssertNil(heap.makeBuffer(length: 64, options: .storageModePrivate, offset: 4))
        }
        assertMisuse("must be <= [heap size](4096)") {
            XCTAssertNil(heap.makeBuffer(length: 512, options: .storageModePrivate, offset: 3840))
        }
        XCTAssertNotNil(heap.makeBuffer(length: 256, options: .storageModePrivate, offset: 3840))
    }

    func testCopyRanges() {
        let source = buffer([1, 2, 3, 4]), target = buffer([0, 0])
        blit { encoder in
            let copy = { (from: Int, to: Int, size: Int) in
                encoder.copy(from: source, sourceOffset: from, to: target, destinationOffset: to, size: size)
            }
            assertMisuse("(sourceOffset(12) + size(8))(20) must be <= [sourceBuffer length](16)") { copy(12, 0, 8) }
            assertMisuse("(destinationOffset(4) + size(8))(12) must be <= [destinationBuffer length](8)") {
                copy(0, 4, 8)
            }
            assertMisuse("size(6) must be a multiple of 4") { copy(0, 0, 6) }
            assertMisuse("sourceOffset(2) must be a multiple of 4") { copy(2, 0, 4) }
            assertMisuse("destinationOffset(1) must be a multiple of 4") { copy(0, 1, 4) }
            assertMisuse("size(0) must be > 0") { copy(0, 0, 0) }
            assertMisuse("overlap") {
                encoder.copy(from: source, sourceOffset: 0, to: source, destinationOffset: 4, size: 8)
            }
            copy(8, 0, 8)
        }
        XCTAssertEqual(floats(target), [3, 4])
    }

    func testFillRanges() {
        let target = buffer([1, 2])
        blit { encoder in
            assertMisuse("must be <= [buffer length](8)") { encoder.fill(buffer: target, range: 4..<12, value: 1) }
            assertMisuse("range.length(3) must be a multiple of 4") {
                encoder.fill(buffer: target, range: 0..<3, value: 1)
            }
            assertMisuse("size(0) must be > 0") { encoder.fill(buffer: target, range: 4..<4, value: 1) }
            encoder.fill(buffer: target, range: 4..<8, value: 0)
        }
        XCTAssertEqual(floats(target), [1, 0])
    }

    func testSynchronizeIsForManagedMemory() {
        let shared = buffer([1]), managed = buffer([1], options: .storageModeManaged)
        blit { encoder in
            assertMisuse("MTLStorageModeManaged") { encoder.synchronize(resource: shared) }
            encoder.synchronize(resource: managed)
        }
    }

    private func makeHeap(_ type: MTLHeapType) -> any MTLHeap {
        let descriptor = MTLHeapDescriptor()
        descriptor.size = 4096
        descriptor.type = type
        return device.makeHeap(descriptor: descriptor)!
    }

    private func blit(_ encode: (any MTLBlitCommandEncoder) -> Void) {
        let commands = queue.makeCommandBuffer()!
        let encoder = commands.makeBlitCommandEncoder()!
        encode(encoder)
        encoder.endEncoding()
        commands.commit()
        commands.waitUntilCompleted()
    }
}
