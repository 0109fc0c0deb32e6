import COrchard
import Metal

/// An operation of the device: its memory accesses, and how it is encoded. Kept until its command buffer is complete,
/// so that it can be encoded again.
struct Operation {
    enum Encode {
        case compute((any MTLComputeCommandEncoder) -> Void)
        case blit((any MTLBlitCommandEncoder) -> Void)
    }

    let uses: [Use]
    let encode: Encode
    /// An estimate; see `Work`.
    let work: UInt64
    /// The labels that were pushed at the time of the call, outermost first.
    let groups: [String]
}

/// Encodes operations for one queue, into at most one open command buffer with one open encoder.
///
/// Compute operations share a concurrent encoder for as long as possible; barriers are inserted only between operations
/// whose operands overlap. A blit ends the compute encoder, and a compute operation ends the blit encoder. The device
/// orders encoders itself.
final class CommandWriter {
    private enum Encoder {
        case compute(any MTLComputeCommandEncoder)
        case blit(any MTLBlitCommandEncoder)

        var base: any MTLCommandEncoder {
            switch self {
            case .compute(let encoder): encoder
            case .blit(let encoder): encoder
            }
        }
    }

    private let queue: any MTLCommandQueue
    private let statistics: Statistics
    private var commandBuffer: (any MTLCommandBuffer)?
    private var encoder: Encoder?
    private var hazards = Hazards()
    private var groups: [String] = []

    /// With Metal's default limit on command buffers in flight, creating one could block, so this limit is far above
    /// the length of any batch.
    private static let commandBuffersInFlight = 1024

    init(device: any MTLDevice, label: String, statistics: Statistics) throws {
        guard let queue = device.makeCommandQueue(maxCommandBufferCount: Self.commandBuffersInFlight) else {
            throw OrchardError(ORCHARD_DEVICE_FAILED, "\(device.name) could not make a command queue.")
        }
        queue.label = label
        self.queue = queue
        self.statistics = statistics
    }

    /// Encodes an operation under the current labels, with the barrier that its operands need.
    func encode(_ operation: Operation) throws {
        switch operation.encode {
        case .compute(let body):
            let encoder = try computeEncoder()
            order(operation.uses, on: encoder)
            body(encoder)
            hazards.record(operation.uses)
        case .blit(let body):
            try body(blitEncoder())
        }
    }

    /// Like ``encode(_:)``, but under the operation's original labels.
    func encodeAgain(_ operation: Operation) throws {
        for group in operation.groups { pushGroup(group) }
        defer { for _ in operation.groups { popGroup() } }
        try encode(operation)
    }

    /// Ends the encoding and returns the open command buffer; nil if there is none.
    func take() -> (any MTLCommandBuffer)? {
        endEncoder()
        defer { commandBuffer = nil }
        return commandBuffer
    }

    func pushGroup(_ label: String) {
        groups.append(label)
        encoder?.base.pushDebugGroup(label)
    }

    func popGroup() {
        groups.removeLast()
        encoder?.base.popDebugGroup()
    }

    func endEncoder() {
        guard let encoder else { return }
        for _ in groups { encoder.base.popDebugGroup() }
        encoder.base.endEncoding()
        self.encoder = nil
        hazards.forgetAll()
    }

    // MARK: Parts

    private func order(_ uses: [Use], on encoder: any MTLComputeCommandEncoder) {
        let conflicts = hazards.conflicts(with: uses)
        guard !conflicts.isEmpty else { return }
        encoder.memoryBarrier(resources: conflicts.map(\.buffer))
        hazards.order(conflicts)
        statistics.values.barriers += 1
    }

    private func computeEncoder() throws -> any MTLComputeCommandEncoder {
        if case .compute(let open) = encoder { return open }
        endEncoder()
        guard let fresh = try openCommandBuffer().makeComputeCommandEncoder(dispatchType: .concurrent) else {
            throw noEncoder("compute")
        }
        opened(.compute(fresh))
        return fresh
    }

    private func blitEncoder() throws -> any MTLBlitCommandEncoder {
        if case .blit(let open) = encoder { return open }
        endEncoder()
        guard let fresh = try openCommandBuffer().makeBlitCommandEncoder() else { throw noEncoder("blit") }
        opened(.blit(fresh))
        return fresh
    }

    private func openCommandBuffer() throws -> any MTLCommandBuffer {
        if let commandBuffer { return commandBuffer }
        guard let fresh = queue.makeCommandBuffer() else {
            throw OrchardError(ORCHARD_DEVICE_FAILED, "\(queue.device.name) could not make a command buffer.")
        }
        commandBuffer = fresh
        return fresh
    }

    private func opened(_ encoder: Encoder) {
        self.encoder = encoder
        statistics.values.encoders += 1
        for group in groups { encoder.base.pushDebugGroup(group) }
    }

    private func noEncoder(_ kind: String) -> OrchardError {
        OrchardError(ORCHARD_DEVICE_FAILED, "\(queue.device.name) could not make a \(kind) encoder.")
    }
}
