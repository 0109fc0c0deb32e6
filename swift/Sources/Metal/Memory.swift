import MetalRuntime

/// A range of device memory, which is freed with its last reference: a buffer, a heap, or the bytes of one `setBytes`.
final class DeviceMemory: @unchecked Sendable {
    let address: UnsafeMutableRawPointer
    let length: Int
    private let release: () -> Void
    private var isGivenBack = false

    init?(length: Int, label: String?) {
        guard let address = mrt_memory_allocate(length, label) else { return nil }
        self.address = address
        self.length = length
        release = { mrt_memory_free(address) }
    }

    /// Wraps the program's memory; `deallocator` is called when it is no longer used.
    init(
        wrapping pointer: UnsafeMutableRawPointer, length: Int, label: String?,
        deallocator: ((UnsafeMutableRawPointer, Int) -> Void)?
    ) {
        address = mrt_memory_wrap(pointer, length, label) ?? pointer
        self.length = length
        release = {
            mrt_memory_free(pointer)
            deallocator?(pointer, length)
        }
    }

    /// A part of a heap; `release` returns it to the heap.
    init(inside heap: DeviceMemory, offset: Int, length: Int, release: @escaping () -> Void) {
        address = heap.address + offset
        self.length = length
        self.release = release
    }

    deinit { giveBack() }

    /// Releases the memory before its last reference is gone: `makeAliasable` does this with a part of a heap.
    func giveBack() {
        guard !isGivenBack else { return }
        isGivenBack = true
        release()
    }

    func write(_ bytes: UnsafeRawPointer, count: Int) {
        address.copyMemory(from: bytes, byteCount: count)
        mrt_memory_mark_written(address, count)
    }

    func forget() { mrt_memory_mark_fresh(address, length) }
}
