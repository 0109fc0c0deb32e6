import MetalRuntime

final class SoftwareCommandBuffer: NSObject, MTLCommandBuffer, @unchecked Sendable {
    let queue: SoftwareCommandQueue
    let retainedReferences: Bool
    let errorOptions: MTLCommandBufferErrorOption
    var label: String?

    private let slot: Slots.Slot
    private let condition = NSCondition()
    private var state = MTLCommandBufferStatus.notEnqueued
    private var isDone = false
    private var failure: (any Error)?
    private var scheduledHandlers: [MTLCommandBufferHandler] = []
    private var completedHandlers: [MTLCommandBufferHandler] = []
    private var times = Times()
    private var debugGroups: [String] = []
    private var commands: [any Command] = []
    private var encoders: [EncoderRecord] = []
    /// The open encoder. The reference is weak, so that an encoder that is released too early is detected.
    private weak var openEncoder: SoftwareEncoder?

    /// Used only on the queue's thread, from `execute` to `complete`.
    private var runFailure: CommandFailure?
    private var refused: CommandFailure?
    private var mark: OpaquePointer?

    private struct Times {
        var kernelStart = 0.0, kernelEnd = 0.0, start = 0.0, end = 0.0
    }

    init(queue: SoftwareCommandQueue, descriptor: MTLCommandBufferDescriptor, slot: Slots.Slot) {
        self.queue = queue
        self.slot = slot
        retainedReferences = descriptor.retainedReferences
        errorOptions = descriptor.errorOptions
    }

    var device: any MTLDevice { queue.softwareDevice }
    var commandQueue: any MTLCommandQueue { queue }
    var logs: any MTLLogContainer { EmptyLogs() }
    var status: MTLCommandBufferStatus { condition.withLock { state } }
    var error: (any Error)? { condition.withLock { failure } }
    var kernelStartTime: CFTimeInterval { condition.withLock { times.kernelStart } }
    var kernelEndTime: CFTimeInterval { condition.withLock { times.kernelEnd } }
    var gpuStartTime: CFTimeInterval { condition.withLock { times.start } }
    var gpuEndTime: CFTimeInterval { condition.withLock { times.end } }
    var isCommitted: Bool { status.rawValue >= MTLCommandBufferStatus.committed.rawValue }
    override var description: String { "<SoftwareCommandBuffer> label = \(label ?? "<none>"), status = \(status)" }

    // MARK: Encoding

    func makeComputeCommandEncoder() -> (any MTLComputeCommandEncoder)? {
        makeComputeCommandEncoder(dispatchType: .serial)
    }

    func makeComputeCommandEncoder(descriptor: MTLComputePassDescriptor) -> (any MTLComputeCommandEncoder)? {
        let samples = descriptor.sampleBufferAttachments.samples
        guard let commands = EncoderSamples.commands(samples, "computeCommandEncoderWithDescriptor:") else {
            return nil
        }
        let encoder = makeComputeCommandEncoder(dispatchType: descriptor.dispatchType)
        sample(encoder as? SoftwareEncoder, commands)
        return encoder
    }

    func makeComputeCommandEncoder(dispatchType: MTLDispatchType) -> (any MTLComputeCommandEncoder)? {
        guard canEncode("computeCommandEncoderWithDispatchType:") else { return nil }
        let encoder = SoftwareComputeEncoder(buffer: self, dispatchType: dispatchType)
        return opened(encoder)
    }

    func makeBlitCommandEncoder() -> (any MTLBlitCommandEncoder)? {
        guard canEncode("blitCommandEncoder") else { return nil }
        return opened(SoftwareBlitEncoder(buffer: self))
    }

    func makeBlitCommandEncoder(descriptor blitPassDescriptor: MTLBlitPassDescriptor) -> (any MTLBlitCommandEncoder)? {
        let samples = blitPassDescriptor.sampleBufferAttachments.samples
        guard let commands = EncoderSamples.commands(samples, "blitCommandEncoderWithDescriptor:") else { return nil }
        let encoder = makeBlitCommandEncoder()
        sample(encoder as? SoftwareEncoder, commands)
        return encoder
    }

    private func sample(_ encoder: SoftwareEncoder?, _ samples: (start: [SampleCommand], end: [SampleCommand])) {
        guard let encoder else { return }
        samples.start.forEach(record)
        encoder.lastCommands = samples.end
    }

    func encodeWaitForEvent(_ event: any MTLEvent, value: UInt64) {
        guard let event = known(event, "encodeWaitForEvent:value:") else { return }
        record(WaitCommand(event: event, value: value))
    }

    func encodeSignalEvent(_ event: any MTLEvent, value: UInt64) {
        guard let event = known(event, "encodeSignalEvent:value:") else { return }
        record(SignalCommand(event: event, value: value))
    }

    func pushDebugGroup(_ string: String) {
        guard notCommitted("pushDebugGroup:") else { return }
        debugGroups.append(string)
    }

    func popDebugGroup() {
        guard notCommitted("popDebugGroup") else { return }
        guard
            !debugGroups.isEmpty
                || refuse(Self.debugName, "popDebugGroup", "popDebugGroup called without a matching pushDebugGroup.")
        else { return }
        debugGroups.removeLast()
    }

    // Memory is always resident here.
    func useResidencySet(_ residencySet: any MTLResidencySet) {}
    func useResidencySets(_ residencySets: [any MTLResidencySet]) {}

    /// Called by encoders, in the order of encoding.
    func record(_ command: any Command) { commands.append(command) }

    func close(_ encoder: SoftwareEncoder) {
        if openEncoder === encoder { openEncoder = nil }
    }

    /// The open debug groups, outermost first.
    var openGroups: [String] { debugGroups }

    static let debugName = "MTLDebugCommandBuffer"

    private func opened<Encoder: SoftwareEncoder>(_ encoder: Encoder) -> Encoder {
        openEncoder = encoder
        encoders.append(encoder.record)
        return encoder
    }

    private func canEncode(_ selector: String) -> Bool {
        notCommitted(selector)
            && (openEncoder == nil
                || refuse(Self.debugName, selector, "A command encoder is already encoding to this command buffer"))
    }

    private func known(_ event: any MTLEvent, _ selector: String) -> SoftwareEvent? {
        guard canEncode(selector) else { return nil }
        guard let event = event as? SoftwareEvent else {
            misuse(Self.debugName, selector, "event is not an event of this device (\(queue.softwareDevice.name)).")
            return nil
        }
        return event
    }

    private func notCommitted(_ selector: String) -> Bool {
        !isCommitted
            || refuse(
                Self.debugName, selector,
                """
                the command buffer is already committed (status \(status)): encode into a new one.
                """)
    }

    // MARK: Committing

    func enqueue() {
        guard notCommitted("enqueue") else { return }
        let isFirst = condition.withLock {
            guard state == .notEnqueued else { return false }
            state = .enqueued
            return true
        }
        if isFirst { queue.enqueue(self) }
    }

    func commit() {
        guard !isCommitted || refuse(Self.debugName, "commit", "commit an already committed command buffer") else {
            return
        }
        guard openEncoder == nil || refuse(Self.debugName, "commit", "commit command buffer with uncommitted encoder")
        else { return }
        guard
            debugGroups.isEmpty
                || refuse(Self.debugName, "commit", "debug groups \(debugGroups) were pushed and not popped.")
        else { return }
        if let purged = commands.lazy.compactMap(\.purged).first {
            return misuse(
                Self.debugName, "commit",
                """
                MTLResource (label: \(purged.label ?? "null")), referenced in cmd buffer (label: \(label ?? "null")) \
                is in \
                volatile or empty purgeable state at commit
                """)
        }
        enqueue()
        condition.withLock { state = .committed }
        queue.wake()
    }

    func addScheduledHandler(_ block: @escaping MTLCommandBufferHandler) {
        guard
            !isCommitted
                || refuse(Self.debugName, "addScheduledHandler:", "Scheduled handler provided after commit call")
        else { return }
        scheduledHandlers.append(block)
    }

    func addCompletedHandler(_ block: @escaping MTLCommandBufferHandler) {
        guard
            !isCommitted
                || refuse(Self.debugName, "addCompletedHandler:", "Completed handler provided after commit call")
        else { return }
        completedHandlers.append(block)
    }

    /// For `await`: unlike a handler, it may be added after `commit()`.
    func whenReached(_ target: MTLCommandBufferStatus, _ body: @escaping @Sendable () -> Void) {
        let isReached = condition.withLock {
            let isScheduling = target == .scheduled
            if isScheduling ? state.rawValue >= target.rawValue : isDone { return true }
            if isScheduling {
                scheduledHandlers.append { _ in body() }
            } else {
                completedHandlers.append { _ in body() }
            }
            return false
        }
        if isReached { body() }
    }

    func waitUntilScheduled() {
        wait("waitUntilScheduled") { state.rawValue >= MTLCommandBufferStatus.scheduled.rawValue }
    }

    /// Returns after the completion handlers have run.
    func waitUntilCompleted() { wait("waitUntilCompleted") { isDone } }

    private func wait(_ selector: String, until reached: () -> Bool) {
        guard
            isCommitted
                || refuse(Self.debugName, selector, "the command buffer must be committed before it is waited for.")
        else { return }
        condition.withLock { while !reached() { condition.wait() } }
    }

    // MARK: Executing, on the queue's thread

    /// Whether a command involves the host, so that earlier command buffers must have completed.
    var isSeenByHost: Bool { commands.contains { $0.isSeenByHost } }

    /// Runs the commands. On a GPU they may still be running when this returns; `complete` waits for them.
    func execute() {
        schedule()
        run()
    }

    /// Ends the command buffer if its work has ended. Waits a few microseconds at most, and returns false if the work
    /// is still running.
    func complete(within microseconds: UInt32) -> Bool {
        if let mark {
            guard let ended = queue.softwareDevice.ended(mark, within: microseconds) else { return false }
            if case .failure(let late) = ended { runFailure = runFailure ?? late }
            self.mark = nil
        }
        let outcome = settle()
        // Frees everything that the commands reference before their completion can be observed.
        commands = []
        condition.withLock {
            failure = outcome
            state = outcome == nil ? .completed : .error
            times.end = hostTime()
        }
        slot.release()
        queue.handlers.async { [self] in call(\.completedHandlers) { isDone = true } }
        return true
    }

    private func schedule() {
        let begun = hostTime()
        condition.withLock {
            state = .scheduled
            times.kernelStart = begun
            times.kernelEnd = hostTime()
            condition.broadcast()
        }
        queue.handlers.async { [self] in call(\.scheduledHandlers) {} }
    }

    /// Calls handlers until none is left; then calls `finish`, before another can be added.
    private func call(
        _ handlers: ReferenceWritableKeyPath<SoftwareCommandBuffer, [MTLCommandBufferHandler]>, finish: () -> Void
    ) {
        while true {
            let due = condition.withLock {
                let due = self[keyPath: handlers]
                self[keyPath: handlers] = []
                if due.isEmpty { finish() }
                condition.broadcast()
                return due
            }
            if due.isEmpty { return }
            due.forEach { $0(self) }
        }
    }

    /// Runs the commands up to the first one that fails. Events are signaled in any case, so that waiting queues
    /// continue.
    private func run() {
        var injected: Int32 = 0
        condition.withLock { times.start = hostTime() }
        if mrt_fault_take("command-buffer", &injected) {
            runFailure = CommandFailure(
                MTLCommandBufferError.Code(rawValue: UInt(max(injected, 0))) ?? .internal, "Injected failure.")
        }
        let verdict = queue.aftermath.verdict()
        if verdict == .ignored { runFailure = .ignored }
        let ran = (commands.count + 1) / 2
        for (index, command) in commands.enumerated() {
            if verdict == .discarded, index >= ran { runFailure = runFailure ?? .discarded }
            if let refusal = command as? RefusedCommand {
                refused = refused ?? refusal.run()
            } else if let failed = runFailure {
                (command as? SignalCommand)?.signal()
                command.encoder?.state = failed.encoder === command.encoder ? .faulted : .affected
            } else {
                runFailure = command.isSeenByHost ? queue.softwareDevice.finish() : nil
                runFailure = runFailure ?? command.run()
                runFailure?.encoder = command.encoder
                command.encoder?.state = runFailure == nil ? .completed : .faulted
            }
        }
        switch queue.softwareDevice.mark() {
        case .success(let mark): self.mark = mark
        case .failure(let late): runFailure = runFailure ?? late
        }
        if verdict == .discarded { runFailure = runFailure ?? .discarded }
        if verdict == .runs, runFailure != nil { queue.aftermath.commandBufferFailed() }
    }

    /// Returns the error of the command buffer, whose work has ended.
    private func settle() -> (any Error)? {
        for command in commands where queue.softwareDevice.gpu == nil {
            for buffer in command.buffers { mrt_memory_settle(buffer.memory.address, buffer.length) }
        }
        return (runFailure ?? refused)?.error(errorOptions.contains(.encoderExecutionStatus) ? encoders : nil)
    }
}

private final class EmptyLogs: NSObject, MTLLogContainer {
    func makeIterator() -> EmptyCollection<any MTLFunctionLog>.Iterator { EmptyCollection().makeIterator() }
}
