import MetalRuntime

public enum MTLCommandEncoderErrorState: Int, Sendable {
    case unknown = 0
    case completed = 1
    case affected = 2
    case pending = 3
    case faulted = 4
}

/// The part of a command buffer's error about one encoder, if `errorOptions` requests it.
public protocol MTLCommandBufferEncoderInfo: NSObjectProtocol, Sendable {
    var label: String { get }
    var debugSignposts: [String] { get }
    var errorState: MTLCommandEncoderErrorState { get }
}

final class EncoderRecord: NSObject, MTLCommandBufferEncoderInfo, @unchecked Sendable {
    var name: String?
    var debugSignposts: [String] = []
    var state = MTLCommandEncoderErrorState.pending

    var label: String { name ?? "" }
    var errorState: MTLCommandEncoderErrorState { state }
}

/// The reason why a command buffer failed.
struct CommandFailure: Error {
    let code: MTLCommandBufferError.Code
    let message: String
    /// The cause in Apple's wording, where the code alone does not say it.
    private var description: String?
    var encoder: EncoderRecord?

    init(_ code: MTLCommandBufferError.Code, _ message: String) {
        self.code = code
        self.message = message
    }

    init(_ result: mrt_result, _ message: String?) {
        self.init(Self.codes[result.rawValue] ?? .internal, message ?? "no more is known")
    }

    static let deallocated = CommandFailure(.invalidResource, "a buffer that it uses was freed")

    static let ignored = CommandFailure(.accessRevoked, "an earlier command buffer of its queue failed")

    static var discarded: CommandFailure {
        var failure = CommandFailure(.internal, "the command buffer before it failed")
        failure.description =
            "Discarded (victim of GPU error/recovery) (00000005:kIOGPUCommandBufferCallbackErrorInnocentVictim)"
        return failure
    }

    /// Returns the error in Apple's wording, followed by details from this device.
    func error(_ encoders: [EncoderRecord]?) -> MTLCommandBufferError {
        let words =
            description ?? Self.descriptions[code]
            ?? "Internal Error (0000000e:kIOGPUCommandBufferCallbackErrorInternal)"
        let more: [String: Any] =
            encoders.map { [MTLCommandBufferEncoderInfoErrorKey: $0 as [any MTLCommandBufferEncoderInfo]] } ?? [:]
        return MTLCommandBufferError(code, "\(words): \(message)", more)
    }

    private static let codes: [UInt32: MTLCommandBufferError.Code] = [
        MRT_RESULT_PAGE_FAULT.rawValue: .pageFault,
        MRT_RESULT_TIMEOUT.rawValue: .timeout,
        MRT_RESULT_STACK_OVERFLOW.rawValue: .stackOverflow,
        MRT_RESULT_INVALID.rawValue: .internal,
        MRT_RESULT_OUT_OF_MEMORY.rawValue: .outOfMemory,
    ]

    private static let descriptions: [MTLCommandBufferError.Code: String] = [
        .timeout: "Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)",
        .pageFault: "Caused GPU Address Fault Error (0000000b:kIOGPUCommandBufferCallbackErrorPageFault)",
        .outOfMemory: "Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
        .invalidResource: "Invalid Resource (00000009:kIOGPUCommandBufferCallbackErrorInvalidResource)",
        .accessRevoked:
            "Ignored (for causing prior/excessive GPU errors) "
            + "(00000004:kIOGPUCommandBufferCallbackErrorSubmissionsIgnored)",
        .notPermitted:
            "Insufficient Permission (to submit GPU work from background) "
            + "(00000006:kIOGPUCommandBufferCallbackErrorBackgroundExecutionNotPermitted)",
        .deviceRemoved: "The device was removed",
        .stackOverflow: "Stack Overflow",
        .memoryless: "Memoryless buffer overflow",
    ]
}
