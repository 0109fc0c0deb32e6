import MetalRuntime

extension SoftwareDevice {
    func makeBuffer(length: Int, options: MTLResourceOptions) -> (any MTLBuffer)? {
        let selector = "newBufferWithLength:options:"
        guard acceptsBuffer(length, options, selector), !takeFault("allocate") else { return nil }
        return DeviceMemory(
            length: length, label: nil, device: self, isPrivate: options.storageMode == .private
        ).map {
            SoftwareBuffer(memory: $0, length: length, options: options)
        }
    }

    func makeBuffer(bytes pointer: UnsafeRawPointer, length: Int, options: MTLResourceOptions) -> (any MTLBuffer)? {
        let selector = "newBufferWithBytes:length:options:"
        guard acceptsBuffer(length, options, selector), acceptsHostBytes(options, selector), !takeFault("allocate"),
            let memory = DeviceMemory(length: length, label: nil, device: self)
        else { return nil }
        memory.write(pointer, count: length)
        return SoftwareBuffer(memory: memory, length: length, options: options)
    }

    func makeBuffer(
        bytesNoCopy pointer: UnsafeMutableRawPointer, length: Int, options: MTLResourceOptions,
        deallocator: ((UnsafeMutableRawPointer, Int) -> Void)?
    ) -> (any MTLBuffer)? {
        let selector = "newBufferWithBytesNoCopy:length:options:deallocator:"
        let page = SoftwareDevice.pageSize
        guard acceptsBuffer(length, options, selector), acceptsHostBytes(options, selector) else { return nil }
        guard
            Int(bitPattern: pointer) % page == 0
                || refuse("MTLDebugDevice", selector, "pointer \(pointer) is not \(page) byte aligned.")
        else { return nil }
        guard
            length % page == 0
                || refuse("MTLDebugDevice", selector, "length(\(length)) must be a multiple of \(page), the page size.")
        else { return nil }
        guard !takeFault("allocate") else { return nil }
        return DeviceMemory(
            wrapping: pointer, length: length, label: nil, device: self, deallocator: deallocator
        ).map { SoftwareBuffer(memory: $0, length: length, options: options) }
    }

    func heapBufferSizeAndAlign(length: Int, options: MTLResourceOptions) -> MTLSizeAndAlign {
        MTLSizeAndAlign(size: roundUp(length, SoftwareHeap.alignment), align: SoftwareHeap.alignment)
    }

    func makeHeap(descriptor: MTLHeapDescriptor) -> (any MTLHeap)? {
        let selector = "newHeapWithDescriptor:"
        let rules: [(holds: Bool, otherwise: String)] = [
            (descriptor.size > 0, "Heap size must be greater than 0."),
            (descriptor.size <= maxBufferLength, "Heap size(\(descriptor.size)) must be <= \(maxBufferLength)."),
            (
                descriptor.storageMode == .shared || descriptor.storageMode == .private,
                "a heap's storage mode must be MTLStorageModeShared or MTLStorageModePrivate, not "
                    + "\(descriptor.storageMode)."
            ),
            (descriptor.type != .sparse, "sparse heaps hold textures, which this device has not."),
        ]
        for rule in rules where !rule.holds {
            misuse("MTLDebugDevice", selector, rule.otherwise)
            return nil
        }
        return takeFault("allocate") ? nil : SoftwareHeap(descriptor, on: self)
    }

    private func acceptsBuffer(_ length: Int, _ options: MTLResourceOptions, _ selector: String) -> Bool {
        let rules: [(holds: Bool, otherwise: String)] = [
            (length > 0, "Cannot create buffer of zero length."),
            (
                length <= maxBufferLength,
                "Buffer length(\(length)) must be <= [device maxBufferLength](\(maxBufferLength))."
            ),
            (options.isValid, "options(0x\(String(options.rawValue, radix: 16))) are not valid MTLResourceOptions."),
            (
                options.storageMode != .memoryless,
                "Cannot create a buffer with MTLStorageModeMemoryless: only textures can be memoryless."
            ),
        ]
        for rule in rules where !rule.holds { return refuse("MTLDebugDevice", selector, rule.otherwise) }
        return true
    }

    private func acceptsHostBytes(_ options: MTLResourceOptions, _ selector: String) -> Bool {
        options.storageMode != .private
            || refuse(
                "MTLDebugDevice", selector,
                """
                storage mode MTLStorageModePrivate cannot take the program's bytes; make a shared buffer and copy it \
                with a blit encoder.
                """)
    }
}
