import COrchard
import Metal

/// The device's limits, read once.
struct DeviceLimits {
    static let buffers = 31
    static let threadgroupArguments = 31

    let threadsPerThreadgroup: MTLSize
    let threadgroupBytes: Int

    init(_ device: any MTLDevice) {
        threadsPerThreadgroup = device.maxThreadsPerThreadgroup
        threadgroupBytes = device.maxThreadgroupMemoryLength
    }
}

/// Rejects dispatches on which Metal's validation layer would abort, with a status and a message.
struct DispatchValidation {
    let request: DispatchRequest
    let device: DeviceLimits

    private var pipeline: Pipeline { request.pipeline }
    private var kernel: String { "Kernel '\(request.pipeline.function)'" }

    func check() throws {
        try checkGrid()
        try checkIndices()
        try checkArguments()
        try checkThreadgroupMemory()
    }

    // MARK: Grid

    private func checkGrid() throws {
        guard !request.grid.isEmpty, !request.threadgroup.isEmpty else {
            throw OrchardError.invalid(
                "\(kernel): grid \(request.grid) of threadgroups \(request.threadgroup); each must be at least 1 in "
                    + "every dimension."
            )
        }
        let (group, most) = (request.threadgroup, device.threadsPerThreadgroup)
        try checkThreads(group.x, "x", most.width)
        try checkThreads(group.y, "y", most.height)
        try checkThreads(group.z, "z", most.depth)
        let threads = group.product
        guard threads <= pipeline.maxThreads else {
            throw OrchardError.limit(
                "\(kernel): a threadgroup \(request.threadgroup) has \(threads) threads; this pipeline's limit is "
                    + "\(pipeline.maxThreads)."
            )
        }
        if request.gridIsThreads { return }
        try checkGroups(request.grid.x, group.x)
        try checkGroups(request.grid.y, group.y)
        try checkGroups(request.grid.z, group.z)
    }

    private func checkThreads(_ threads: UInt32, _ axis: String, _ most: Int) throws {
        guard threads <= most else {
            throw OrchardError.limit(
                "\(kernel): a threadgroup has \(threads) threads in \(axis); the device's limit is \(most).")
        }
    }

    private func checkGroups(_ groups: UInt32, _ size: UInt32) throws {
        guard UInt64(groups) * UInt64(size) <= UInt32.max else {
            throw OrchardError.limit(
                "\(kernel): \(groups) threadgroups of \(size) are more than 2^32 - 1 threads in one dimension.")
        }
    }

    // MARK: Arguments

    private func checkIndices() throws {
        var bound: UInt64 = 0
        func check(_ index: Int) throws {
            guard index < DeviceLimits.buffers else {
                throw OrchardError.limit(
                    "\(kernel): buffer(\(index)) is bound; the highest index is \(DeviceLimits.buffers - 1).")
            }
            guard bound & (1 << index) == 0 else {
                throw OrchardError.invalid("\(kernel): buffer(\(index)) is bound twice.")
            }
            bound |= 1 << index
        }
        for binding in request.bindings { try check(binding.index) }
        for inline in request.inlines { try check(inline.index) }
    }

    private func checkArguments() throws {
        for argument in pipeline.arguments where argument.isUsed && argument.isBuffer {
            if let binding = request.bindings.first(where: { $0.index == argument.index }) {
                try check(
                    argument, offset: binding.range.lowerBound,
                    bytes: Int(binding.buffer.length) - binding.range.lowerBound)
            } else if let inline = request.inlines.first(where: { $0.index == argument.index }) {
                try check(argument, offset: 0, bytes: inline.bytes.count)
                try checkReadOnly(argument)
            } else {
                throw missing(argument, "buffer")
            }
        }
    }

    private func check(_ argument: KernelArgument, offset: Int, bytes: Int) throws {
        guard offset % argument.alignment == 0 else {
            throw OrchardError.invalid(
                "\(kernel): '\(argument.name)' at buffer(\(argument.index)) is bound at offset \(offset); "
                    + "expected a multiple of \(argument.alignment).")
        }
        guard bytes >= argument.dataSize else {
            throw OrchardError.invalid(
                "\(kernel): '\(argument.name)' at buffer(\(argument.index)) is bound to \(bytes) bytes; its type has "
                    + "\(argument.dataSize)."
            )
        }
    }

    private func checkReadOnly(_ argument: KernelArgument) throws {
        guard argument.access == .readOnly else {
            throw OrchardError(
                ORCHARD_WRONG_KIND,
                "\(kernel): '\(argument.name)' at buffer(\(argument.index)) is written by the kernel, but bound to "
                    + "inline bytes; "
                    + "bind a buffer.")
        }
    }

    private func missing(_ argument: KernelArgument, _ space: String) -> OrchardError {
        OrchardError(
            ORCHARD_BINDING_MISSING,
            "\(kernel): '\(argument.name)' at \(space)(\(argument.index)) is used by the kernel, but not bound.")
    }

    // MARK: Threadgroup memory

    private func checkThreadgroupMemory() throws {
        var total = pipeline.staticThreadgroupBytes
        var bound: UInt64 = 0
        for memory in request.threadgroupMemory {
            guard memory.index < DeviceLimits.threadgroupArguments else {
                throw OrchardError.limit(
                    "\(kernel): threadgroup(\(memory.index)) is bound; the highest index is "
                        + "\(DeviceLimits.threadgroupArguments - 1)."
                )
            }
            guard bound & (1 << memory.index) == 0, memory.length > 0, memory.length % 16 == 0 else {
                throw OrchardError.invalid(
                    "\(kernel): expected the length of threadgroup(\(memory.index)) to be a multiple of 16, given "
                        + "once; got \(memory.length) bytes."
                )
            }
            bound |= 1 << memory.index
            total += memory.length
        }
        guard total <= device.threadgroupBytes else {
            throw OrchardError.limit(
                "\(kernel): \(total) bytes of threadgroup memory, \(pipeline.staticThreadgroupBytes) of them the "
                    + "kernel's own; "
                    + "the device has \(device.threadgroupBytes).")
        }
        for argument in pipeline.arguments
        where argument.isUsed && !argument.isBuffer && bound & (1 << argument.index) == 0 {
            throw missing(argument, "threadgroup")
        }
    }
}
