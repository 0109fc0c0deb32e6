import MetalRuntime

/// The dispatches of an encoder for a GPU, with everything that was bound when they were encoded. They share arrays, so
/// that encoding one allocates nothing. Labels and the order of dispatches are only for the software device's checker.
final class GPUDispatches {
    private struct Bound {
        let index: Int
        /// Nil for bytes, which are in `bytes`.
        let buffer: BufferReference?
        let offset: Int
        let length: Int
    }

    private struct Dispatch {
        let pipeline: SoftwarePipeline
        let grid: DispatchCommand.Grid
        let threadsPerThreadgroup: MTLSize
        let bound: Range<Int>
        let lengths: Range<Int>
    }

    let encoder: EncoderRecord
    private let gpu: UInt32
    private let retainsReferences: Bool
    private var dispatches: [Dispatch] = []
    private var bound: [Bound] = []
    private var bytes: [UInt8] = []
    private var lengths: [(index: Int, length: Int)] = []
    private var held: [AnyObject] = []
    /// The request of the last dispatch. Its slots are reset after each one, which takes less time than a new request.
    private var request = mrt_dispatch()

    init(gpu: UInt32, encoder: EncoderRecord, retainsReferences: Bool) {
        self.gpu = gpu
        self.encoder = encoder
        self.retainsReferences = retainsReferences
    }

    // MARK: Encoding

    /// Copies the bytes of one `setBytes`, and returns their offset.
    func stage(_ source: UnsafeRawPointer, _ count: Int) -> Int {
        let offset = roundUp(bytes.count, 16)
        bytes.append(contentsOf: repeatElement(0, count: offset - bytes.count))
        bytes.append(contentsOf: UnsafeRawBufferPointer(start: source, count: count))
        return offset
    }

    /// Keeps a resource that the dispatches reach without a binding.
    func hold(_ resource: AnyObject) { held.append(resource) }

    func add(
        _ pipeline: SoftwarePipeline, _ grid: DispatchCommand.Grid, _ threadsPerThreadgroup: MTLSize,
        _ bindings: [Binding], _ threadgroupLengths: [Int]
    ) -> GPUDispatch {
        let (firstBound, firstLength) = (bound.count, lengths.count)
        for index in pipeline.usedBuffers {
            switch bindings[index] {
            case .none, .bytes: break
            case .buffer(let buffer, let offset):
                let reference = BufferReference(buffer, retained: retainsReferences)
                bound.append(Bound(index: index, buffer: reference, offset: offset, length: buffer.length - offset))
            case .staged(let offset, let length):
                bound.append(Bound(index: index, buffer: nil, offset: offset, length: length))
            }
        }
        for index in pipeline.usedThreadgroupArguments { lengths.append((index, threadgroupLengths[index])) }
        dispatches.append(
            Dispatch(
                pipeline: pipeline, grid: grid, threadsPerThreadgroup: threadsPerThreadgroup,
                bound: firstBound..<bound.count, lengths: firstLength..<lengths.count))
        return GPUDispatch(all: self, index: dispatches.count - 1)
    }

    // MARK: Executing

    fileprivate func buffers(of index: Int) -> [SoftwareBuffer] {
        let indirect: BufferReference?
        if case .indirect(let counts, _) = dispatches[index].grid { indirect = counts } else { indirect = nil }
        return bound[dispatches[index].bound].compactMap { $0.buffer?.buffer } + [indirect?.buffer].compactMap { $0 }
            + held.compactMap { $0 as? SoftwareBuffer }
    }

    /// Called for every dispatch at its commit, so it makes an array of all buffers only if there are others.
    fileprivate func purged(of index: Int) -> SoftwareBuffer? {
        for at in dispatches[index].bound {
            if let buffer = bound[at].buffer?.buffer, buffer.isPurged { return buffer }
        }
        if held.isEmpty, case .threads = dispatches[index].grid { return nil }
        return buffers(of: index).first(where: \.isPurged)
    }

    fileprivate func run(_ index: Int) -> CommandFailure? {
        let dispatch = dispatches[index]
        guard let threads = dispatch.grid.resolve(dispatch.threadsPerThreadgroup) else { return .deallocated }
        // Another kernel may write counts of zero; then there is nothing to do.
        guard threads.width > 0 && threads.height > 0 && threads.depth > 0 else { return nil }
        request.function = dispatch.pipeline.handle
        request.grid = mrt_size(threads)
        request.threads_per_threadgroup = mrt_size(dispatch.threadsPerThreadgroup)
        return bytes.withUnsafeMutableBytes { bytes in
            guard bind(dispatch, bytes.baseAddress) else { return .deallocated }
            defer { unbind(dispatch) }
            var message: UnsafeMutablePointer<CChar>?
            let result = mrt_gpu_dispatch(gpu, &request, &message)
            return result == MRT_RESULT_OK ? nil : CommandFailure(result, takeMessage(message))
        }
    }

    private func bind(_ dispatch: Dispatch, _ bytes: UnsafeMutableRawPointer?) -> Bool {
        withUnsafeMutableBytes(of: &request.threadgroup_lengths) { raw in
            let slots = raw.bindMemory(to: UInt32.self)
            for at in dispatch.lengths { slots[lengths[at].index] = UInt32(lengths[at].length) }
        }
        return withUnsafeMutableBytes(of: &request.buffers) { raw in
            let slots = raw.bindMemory(to: mrt_bound_buffer.self)
            for at in dispatch.bound {
                let entry = bound[at]
                var start = bytes
                if let reference = entry.buffer {
                    guard let buffer = reference.resolve() else { return false }
                    start = buffer.memory.address
                }
                slots[entry.index] = mrt_bound_buffer(
                    address: start.map { $0 + entry.offset }, length: entry.length, label: nil,
                    is_bytes: entry.buffer == nil)
            }
            return true
        }
    }

    private func unbind(_ dispatch: Dispatch) {
        withUnsafeMutableBytes(of: &request.buffers) { raw in
            let slots = raw.bindMemory(to: mrt_bound_buffer.self)
            for at in dispatch.bound { slots[bound[at].index] = mrt_bound_buffer() }
        }
    }
}

/// One of ``GPUDispatches``. It is so small that an array of commands stores it without an allocation.
struct GPUDispatch: Command {
    fileprivate let all: GPUDispatches
    fileprivate let index: Int

    var encoder: EncoderRecord? { all.encoder }
    var buffers: [SoftwareBuffer] { all.buffers(of: index) }
    var purged: SoftwareBuffer? { all.purged(of: index) }
    func run() -> CommandFailure? { all.run(index) }
}
