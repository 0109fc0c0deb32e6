import COrchard
import Foundation
import Metal

/// The one queue of a context, with at most one open command buffer and one open encoder. Guarded by the context's
/// lock.
///
/// Compute operations share a concurrent encoder for as long as possible; barriers stand only where operands overlap.
/// Blits end it, and the other way round; between encoders the device orders by itself. Nothing in here waits, and
/// nothing allocates: what an operation needs is allocated before it comes here.
final class Stream {
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

    var batchOperations: Int
    var batchBytes: Int

    /// The ticket of the command buffer that the next operation goes into.
    private(set) var openTicket: UInt64 = 1
    private(set) var hasOpenWork = false

    private let queue: any MTLCommandQueue
    private let tickets: Tickets
    private let faults: Faults
    private let statistics: Statistics
    private var commandBuffer: (any MTLCommandBuffer)?
    private var encoder: Encoder?
    private var hazards = Hazards()
    private var groups: [String] = []
    private var operations = 0
    private var bytes = 0

    /// Metal's own limit of command buffers in flight would make a new one wait: so it is far above the length of any
    /// batch.
    static let commandBuffersInFlight = 1024

    init(
        device: any MTLDevice, label: String, batchOperations: Int, batchBytes: Int,
        tickets: Tickets, faults: Faults, statistics: Statistics
    ) throws {
        guard let queue = device.makeCommandQueue(maxCommandBufferCount: Self.commandBuffersInFlight) else {
            throw OrchardError(ORCHARD_DEVICE_FAILED, "\(device.name) could not make a command queue.")
        }
        queue.label = label
        self.queue = queue
        self.batchOperations = batchOperations
        self.batchBytes = batchBytes
        self.tickets = tickets
        self.faults = faults
        self.statistics = statistics
    }

    var lastCommitted: UInt64 { openTicket - 1 }

    /// Encodes one dispatch with the barrier that its operands need.
    func compute(_ uses: [Use], _ encode: (any MTLComputeCommandEncoder) -> Void) throws -> UInt64 {
        let encoder = try computeEncoder()
        let conflicts = hazards.conflicts(with: uses)
        if !conflicts.isEmpty {
            encoder.memoryBarrier(resources: conflicts.map(\.buffer))
            hazards.order(conflicts)
            statistics.values.barriers += 1
        }
        encode(encoder)
        hazards.record(uses)
        statistics.values.dispatches += 1
        return finish(uses)
    }

    func blit(_ uses: [Use], _ encode: (any MTLBlitCommandEncoder) -> Void) throws -> UInt64 {
        try encode(blitEncoder())
        return finish(uses)
    }

    func commit() {
        guard let commandBuffer else { return }
        endEncoder()
        let ticket = openTicket
        self.commandBuffer = nil
        openTicket += 1
        operations = 0
        bytes = 0
        hasOpenWork = false
        statistics.values.command_buffers += 1
        if let code = faults.take(.commandBuffer) {
            return tickets.complete(ticket, failure: Self.injected(code).reason)
        }
        commandBuffer.addCompletedHandler { [tickets] done in
            tickets.complete(ticket, failure: done.status == .error ? done.error?.reason ?? "no reason is given" : nil)
        }
        commandBuffer.commit()
    }

    // MARK: Labels

    func pushGroup(_ label: String) {
        groups.append(label)
        encoder?.base.pushDebugGroup(label)
    }

    func popGroup() throws {
        guard groups.popLast() != nil else { throw OrchardError.invalid("No label is pushed.") }
        encoder?.base.popDebugGroup()
    }

    // MARK: Parts

    private func finish(_ uses: [Use]) -> UInt64 {
        let ticket = openTicket
        for use in uses {
            use.allocation.lastUse = ticket
            if use.writes { use.allocation.lastWrite = ticket }
            bytes += use.range.count
        }
        operations += 1
        if operations >= batchOperations || bytes >= batchBytes { commit() }
        return ticket
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
        hasOpenWork = true
        return fresh
    }

    private func opened(_ encoder: Encoder) {
        self.encoder = encoder
        statistics.values.encoders += 1
        for group in groups { encoder.base.pushDebugGroup(group) }
    }

    private func endEncoder() {
        guard let encoder else { return }
        for _ in groups { encoder.base.popDebugGroup() }
        encoder.base.endEncoding()
        self.encoder = nil
        hazards.forgetAll()
    }

    private func noEncoder(_ kind: String) -> OrchardError {
        OrchardError(ORCHARD_DEVICE_FAILED, "\(queue.device.name) could not make a \(kind) encoder.")
    }

    private static func injected(_ code: Int32) -> NSError {
        let code = code == 0 ? Int(MTLCommandBufferError.Code.internal.rawValue) : Int(code)
        return NSError(
            domain: MTLCommandBufferErrorDomain, code: code,
            userInfo: [NSLocalizedDescriptionKey: "Injected failure of the command buffer"])
    }
}
