/// Common parts of compute and blit encoders: whether they have ended, debug groups, and fences.
class SoftwareEncoder: NSObject, @unchecked Sendable {
    let buffer: SoftwareCommandBuffer
    let record = EncoderRecord()
    let debugName: String
    private(set) var isOpen = true
    private var debugGroups: [String] = []
    /// Commands that are encoded after all others.
    var lastCommands: [any Command] = []

    init(buffer: SoftwareCommandBuffer, debugName: String) {
        self.buffer = buffer
        self.debugName = debugName
    }

    deinit {
        guard isOpen else { return }
        misuse("_MTLCommandEncoder", "dealloc", "Command encoder released without endEncoding")
    }

    var device: any MTLDevice { buffer.queue.softwareDevice }

    var label: String? {
        get { record.name }
        set { record.name = newValue }
    }

    func endEncoding() {
        guard isOpen || refuse(debugName, "endEncoding", "endEncoding has already been called.") else { return }
        if !debugGroups.isEmpty {
            misuse(debugName, "endEncoding", "debug groups \(debugGroups) were pushed and not popped.")
        }
        isOpen = false
        lastCommands.forEach(buffer.record)
        buffer.close(self)
    }

    func insertDebugSignpost(_ string: String) {
        guard encodes("insertDebugSignpost:") else { return }
        record.debugSignposts.append(string)
    }

    func pushDebugGroup(_ string: String) {
        guard encodes("pushDebugGroup:") else { return }
        debugGroups.append(string)
    }

    func popDebugGroup() {
        guard encodes("popDebugGroup") else { return }
        guard
            !debugGroups.isEmpty
                || refuse(debugName, "popDebugGroup", "popDebugGroup called without a matching pushDebugGroup.")
        else { return }
        debugGroups.removeLast()
    }

    func updateFence(_ fence: any MTLFence) { _ = encodes("updateFence:") }

    func waitForFence(_ fence: any MTLFence) { _ = encodes("waitForFence:") }

    /// Returns whether the encoder is open; reports a misuse if it has ended.
    func encodes(_ selector: String) -> Bool {
        isOpen || refuse(debugName, selector, "encoding after endEncoding: this encoder has ended; make a new one.")
    }

    /// The position of a command, for findings: command buffer, encoder and debug groups, outermost first.
    var path: String? {
        let parts = [buffer.label].compactMap { $0 } + buffer.openGroups + [label].compactMap { $0 } + debugGroups
        return parts.isEmpty ? nil : parts.joined(separator: "/")
    }

    /// Returns the resource as a buffer if it belongs to this device.
    func known(_ resource: any MTLResource, _ selector: String) -> SoftwareBuffer? {
        let device = self.buffer.queue.softwareDevice
        if let buffer = resource as? SoftwareBuffer, buffer.memory.device === device { return buffer }
        misuse(debugName, selector, "the resource is not one of this device (\(device.name)).")
        return nil
    }
}
