import MetalRuntime

/// A queue of Metal 4. It encodes each command buffer again for a Metal 3 queue, and looks up its bindings in the
/// residency sets. An address or resource that is in no set is misuse, since a GPU would fault on it.
final class Metal4Queue: NSObject, MTL4CommandQueue, @unchecked Sendable {
    let label: String?
    private let softwareDevice: SoftwareDevice
    private let queue: SoftwareCommandQueue
    private let feedbackQueue: DispatchQueue?
    private let sets = Guarded<[any MTLResidencySet]>([])

    init(_ device: SoftwareDevice, _ descriptor: MTL4CommandQueueDescriptor) {
        softwareDevice = device
        label = descriptor.label
        feedbackQueue = descriptor.feedbackQueue
        queue = SoftwareCommandQueue(device, maxCommandBufferCount: 1024)
        queue.label = descriptor.label
    }

    var device: any MTLDevice { softwareDevice }

    func commit(_ commandBuffers: [any MTL4CommandBuffer]) { commit(commandBuffers, options: MTL4CommitOptions()) }

    func commit(_ commandBuffers: [any MTL4CommandBuffer], options: MTL4CommitOptions) {
        let buffers = commandBuffers.compactMap { $0 as? Metal4Buffer }
        guard
            buffers.count == commandBuffers.count && buffers.allSatisfy(\.isEnded)
                || refuse("MTL4DebugCommandQueue", "commit:count:", "a command buffer has not ended: endCommandBuffer.")
        else { return }
        let resident = sets.withLock { $0 }
        let encoded = buffers.map { buffer in
            buffer.finish()
            return encode(buffer, Residents(resident + buffer.residencySets))
        }
        report(encoded, to: options.handlers)
        encoded.forEach { $0.commit() }
    }

    func signalEvent(_ event: any MTLEvent, value: UInt64) {
        let commands = queue.makeCommandBuffer()!
        commands.encodeSignalEvent(event, value: value)
        commands.commit()
    }

    func waitForEvent(_ event: any MTLEvent, value: UInt64) {
        let commands = queue.makeCommandBuffer()!
        commands.encodeWaitForEvent(event, value: value)
        commands.commit()
    }

    func addResidencySet(_ residencySet: any MTLResidencySet) {
        queue.addResidencySet(residencySet)
        sets.withLock { if !$0.contains(where: { $0 === residencySet }) { $0.append(residencySet) } }
    }

    func addResidencySets(_ residencySets: [any MTLResidencySet]) { residencySets.forEach(addResidencySet) }

    func removeResidencySet(_ residencySet: any MTLResidencySet) {
        queue.removeResidencySet(residencySet)
        sets.withLock { $0.removeAll { $0 === residencySet } }
    }

    func removeResidencySets(_ residencySets: [any MTLResidencySet]) { residencySets.forEach(removeResidencySet) }

    private func encode(_ buffer: Metal4Buffer, _ residents: Residents) -> SoftwareCommandBuffer {
        let commands = queue.makeCommandBuffer() as! SoftwareCommandBuffer
        let allocator = buffer.allocator
        allocator?.begin()
        commands.addCompletedHandler { _ in allocator?.end() }
        Metal4Replay(commands, residents).run(buffer.operations)
        return commands
    }

    /// Calls the handlers once all command buffers of a commit have completed.
    private func report(_ commands: [SoftwareCommandBuffer], to handlers: [MTL4CommitFeedbackHandler]) {
        guard let last = commands.last, !handlers.isEmpty else { return }
        let feedbackQueue = self.feedbackQueue
        last.addCompletedHandler { _ in
            let feedback = Metal4Feedback(commands)
            let call: @Sendable () -> Void = { handlers.forEach { $0(feedback) } }
            if let feedbackQueue { feedbackQueue.async(execute: call) } else { call() }
        }
    }
}

private final class Metal4Feedback: NSObject, MTL4CommitFeedback, @unchecked Sendable {
    let error: (any Error)?
    let gpuStartTime: CFTimeInterval
    let gpuEndTime: CFTimeInterval

    init(_ commands: [SoftwareCommandBuffer]) {
        error = commands.lazy.compactMap(\.error).first.map(Self.error)
        gpuStartTime = commands.first!.gpuStartTime
        gpuEndTime = commands.last!.gpuEndTime
    }

    /// The Metal 4 queue error that corresponds to a Metal 3 command buffer error.
    private static func error(_ error: any Error) -> any Error {
        let codes: [MTLCommandBufferError.Code: MTL4CommandQueueError.Code] = [
            .timeout: .timeout, .notPermitted: .notPermitted, .outOfMemory: .outOfMemory,
            .deviceRemoved: .deviceRemoved, .accessRevoked: .accessRevoked,
        ]
        let code = (error as? MTLCommandBufferError).flatMap { codes[$0.code] } ?? .internal
        return MTL4CommandQueueError(code, error.localizedDescription)
    }
}

/// The allocations in the residency sets of a queue and a command buffer.
struct Residents {
    let allocations: [any MTLAllocation]
    private let memory: Set<UnsafeRawPointer>

    init(_ sets: [any MTLResidencySet]) {
        allocations = sets.flatMap { ($0 as? SoftwareResidencySet)?.resident ?? [] }
        memory = Set(allocations.compactMap { Self.memory($0).map { UnsafeRawPointer($0.address) } })
    }

    private static func memory(_ allocation: any MTLAllocation) -> DeviceMemory? {
        (allocation as? SoftwareBuffer)?.memory ?? (allocation as? SoftwareHeap)?.memory
            ?? (allocation as? SoftwareTensor)?.memory ?? (allocation as? SoftwareTexture)?.memory
    }

    /// A resource is resident if its set has it, its heap, or another resource of the same memory.
    func contains(_ resource: any MTLResource) -> Bool {
        let heap =
            (resource as? SoftwareBuffer)?.softwareHeap ?? (resource as? SoftwareTexture)?.softwareHeap
            ?? (resource as? SoftwareTensor)?.softwareBuffer?.softwareHeap
        return [Self.memory(resource), heap?.memory].contains { $0.map { memory.contains($0.address) } ?? false }
    }

    /// The buffer that contains an address, and the offset within it.
    func buffer(at address: MTLGPUAddress) -> (SoftwareBuffer, offset: Int)? {
        for allocation in allocations {
            guard let memory = Self.memory(allocation), let pointer = UnsafeMutableRawPointer(bitPattern: UInt(address))
            else { continue }
            let offset = pointer - memory.address
            let known = allocation as? SoftwareBuffer ?? (allocation as? SoftwareTensor)?.softwareBuffer
            guard (0..<(known?.length ?? memory.length)).contains(offset) else { continue }
            if let known { return (known, offset) }
            guard let heap = allocation as? SoftwareHeap else { continue }
            let rest = DeviceMemory(inside: memory, offset: offset, length: memory.length - offset) {}
            return (SoftwareBuffer(memory: rest, length: rest.length, options: heap.resourceOptions), 0)
        }
        return nil
    }
}
