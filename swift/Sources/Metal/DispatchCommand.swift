import MetalRuntime

/// A dispatch of a kernel on the software device, with everything that was bound when it was encoded.
struct DispatchCommand: Command {
    enum Grid {
        case threads(MTLSize)
        case indirect(BufferReference, offset: Int)
    }

    struct Bound {
        enum Content {
            case buffer(BufferReference, offset: Int)
            case bytes(DeviceMemory)
        }

        let index: Int
        let content: Content?

        init(index: Int, content: Binding, retained: Bool) {
            self.index = index
            switch content {
            case .none, .staged: self.content = nil
            case .buffer(let buffer, let offset):
                self.content = .buffer(BufferReference(buffer, retained: retained), offset: offset)
            case .bytes(let memory): self.content = .bytes(memory)
            }
        }

        var buffer: SoftwareBuffer? {
            if case .buffer(let reference, _)? = content { return reference.buffer }
            return nil
        }

        var address: UnsafeRawPointer? { buffer.map { UnsafeRawPointer($0.memory.address) } }
    }

    let encoder: EncoderRecord?
    let pipeline: SoftwarePipeline
    let path: String?
    let bound: [Bound]
    let threadgroupLengths: [Int]
    let grid: Grid
    let threadsPerThreadgroup: MTLSize
    let order: HazardScope.Order
    let used: [UnsafeRawPointer]
    let usedHolders: [AnyObject]
    /// By index; nil if the kernel has none.
    let textures: [SoftwareTexture?]
    let samplers: [SoftwareSampler?]

    var buffers: [SoftwareBuffer] {
        let indirect: SoftwareBuffer?
        if case .indirect(let reference, _) = grid { indirect = reference.buffer } else { indirect = nil }
        return bound.compactMap(\.buffer) + usedHolders.compactMap { $0 as? SoftwareBuffer }
            + [indirect].compactMap { $0 }
    }

    /// Called for every command at its commit, so it makes the array of all buffers only if there are others.
    var purged: SoftwareBuffer? {
        if let found = bound.lazy.compactMap(\.buffer).first(where: \.isPurged) { return found }
        if usedHolders.isEmpty, case .threads = grid { return nil }
        return buffers.first(where: \.isPurged)
    }

    func run() -> CommandFailure? {
        guard let threads = grid.resolve(threadsPerThreadgroup) else { return .deallocated }
        // Another kernel may write counts of zero; then there is nothing to do.
        guard threads.width > 0 && threads.height > 0 && threads.depth > 0 else { return nil }
        var dispatch = mrt_dispatch()
        dispatch.function = pipeline.handle
        dispatch.grid = mrt_size(threads)
        dispatch.threads_per_threadgroup = mrt_size(threadsPerThreadgroup)
        dispatch.epoch = order.epoch
        var labels: [UnsafeMutablePointer<CChar>] = []
        defer { labels.forEach { free($0) } }
        guard bind(&dispatch, &labels) else { return .deallocated }
        return launch(&dispatch, &labels)
    }

    private func bind(_ dispatch: inout mrt_dispatch, _ labels: inout [UnsafeMutablePointer<CChar>]) -> Bool {
        for entry in bound {
            var slot = mrt_bound_buffer()
            switch entry.content {
            case .none: continue
            case .bytes(let memory):
                slot.address = memory.address
                slot.length = memory.length
                slot.is_bytes = true
            case .buffer(let reference, let offset):
                guard let buffer = reference.resolve() else { return false }
                slot.address = buffer.memory.address + offset
                slot.length = buffer.length - offset
                if let label = buffer.label, let text = strdup(label) {
                    labels.append(text)
                    slot.label = UnsafePointer(text)
                }
            }
            withUnsafeMutableBytes(of: &dispatch.buffers) {
                $0.bindMemory(to: mrt_bound_buffer.self)[entry.index] = slot
            }
        }
        withUnsafeMutableBytes(of: &dispatch.threadgroup_lengths) { raw in
            let lengths = raw.bindMemory(to: UInt32.self)
            for (index, length) in threadgroupLengths.enumerated() { lengths[index] = UInt32(length) }
        }
        return true
    }

    private func launch(_ dispatch: inout mrt_dispatch, _ labels: inout [UnsafeMutablePointer<CChar>])
        -> CommandFailure?
    {
        if let path, let text = strdup(path) {
            labels.append(text)
            dispatch.label = UnsafePointer(text)
        }
        let ordered = order.ordered.map { UnsafeRawPointer?($0) }, reachable = used.map { UnsafeRawPointer?($0) }
        let textureStates = states(textures.map { $0?.state }, Int(MRT_MAX_TEXTURES))
        let samplerStates = states(samplers.map { $0?.state }, Int(MRT_MAX_SAMPLERS))
        defer {
            textureStates.deallocate()
            samplerStates.deallocate()
        }
        dispatch.textures = UnsafePointer(textureStates)
        dispatch.samplers = UnsafePointer(samplerStates)
        return ordered.withUnsafeBufferPointer { ordered in
            reachable.withUnsafeBufferPointer { reachable in
                dispatch.ordered_resources = ordered.baseAddress
                dispatch.ordered_resource_count = ordered.count
                dispatch.used_resources = reachable.baseAddress
                dispatch.used_resource_count = reachable.count
                var message: UnsafeMutablePointer<CChar>?
                let result = mrt_dispatch_run(&dispatch, nil, &message)
                let text = takeMessage(message)
                return result == MRT_RESULT_OK ? nil : CommandFailure(result, text)
            }
        }
    }
}

/// The states of textures or samplers that kernels read, by index; null if none is bound.
private func states<State>(_ list: [UnsafeMutablePointer<State>?], _ count: Int)
    -> UnsafeMutablePointer<UnsafePointer<State>?>
{
    let all = UnsafeMutablePointer<UnsafePointer<State>?>.allocate(capacity: count)
    all.initialize(repeating: nil, count: count)
    for (index, state) in list.enumerated() { all[index] = state.map { UnsafePointer($0) } }
    return all
}

extension DispatchCommand.Grid {
    /// Returns the number of threads; nil if the buffer with the counts is gone.
    func resolve(_ threadsPerThreadgroup: MTLSize) -> MTLSize? {
        switch self {
        case .threads(let size): return size
        case .indirect(let reference, let offset):
            guard let memory = reference.resolve()?.memory, let counts = Self.counts(in: memory, at: offset) else {
                return nil
            }
            return MTLSizeMake(counts[0], counts[1], counts[2]) * threadsPerThreadgroup
        }
    }

    /// Reads three counts, which the GPU may still have to write.
    private static func counts(in memory: DeviceMemory, at offset: Int) -> [Int]? {
        var counts = [UInt32](repeating: 0, count: 3)
        let source = memory.address + offset
        let isRead = counts.withUnsafeMutableBytes { bytes in
            guard memory.device.gpu != nil else {
                bytes.copyMemory(from: UnsafeRawBufferPointer(start: source, count: bytes.count))
                return true
            }
            let failure = memory.device.copy(to: bytes.baseAddress!, from: source, count: bytes.count)
            return failure == nil && memory.device.finish() == nil
        }
        return isRead ? counts.map(Int.init) : nil
    }
}

extension mrt_size {
    init(_ size: MTLSize) {
        self.init(width: UInt64(size.width), height: UInt64(size.height), depth: UInt64(size.depth))
    }
}
