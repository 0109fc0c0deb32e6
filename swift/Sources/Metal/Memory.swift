import MetalRuntime

/// A range of device memory, which is freed with its last reference: a buffer, a heap, or the bytes of one `setBytes`.
final class DeviceMemory: @unchecked Sendable {
    let device: SoftwareDevice
    let address: UnsafeMutableRawPointer
    let length: Int
    private let release: () -> Void
    private var isGivenBack = false

    init?(length: Int, label: String?, device: SoftwareDevice = .shared, isPrivate: Bool = false) {
        let memory =
            device.gpu.map { mrt_gpu_memory_allocate($0, length, isPrivate) } ?? mrt_memory_allocate(length, label)
        guard let address = memory else { return nil }
        self.device = device
        self.address = address
        self.length = length
        release = device.gpu == nil ? { mrt_memory_free(address) } : { mrt_gpu_memory_free(address) }
    }

    /// The bytes of one `setBytes`, as memory that the checker knows.
    convenience init?(bytes: UnsafeRawPointer, count: Int, label: String) {
        self.init(length: count, label: label)
        write(bytes, count: count)
    }

    /// Wraps the program's memory; `deallocator` is called when it is no longer used.
    init?(
        wrapping pointer: UnsafeMutableRawPointer, length: Int, label: String?, device: SoftwareDevice,
        deallocator: ((UnsafeMutableRawPointer, Int) -> Void)?
    ) {
        if let gpu = device.gpu {
            guard mrt_gpu_memory_wrap(gpu, pointer, length) else { return nil }
            address = pointer
        } else {
            address = mrt_memory_wrap(pointer, length, label) ?? pointer
        }
        self.device = device
        self.length = length
        release = {
            if device.gpu == nil { mrt_memory_free(pointer) } else { mrt_gpu_memory_free(pointer) }
            deallocator?(pointer, length)
        }
    }

    /// A part of a heap; `release` returns it to the heap.
    init(inside heap: DeviceMemory, offset: Int, length: Int, release: @escaping () -> Void) {
        device = heap.device
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

    func forget() { if device.gpu == nil { mrt_memory_mark_fresh(address, length) } }
}
