import COrchard
import Foundation
import Metal

/// Features that only the software device has: settings, findings and counters. No other file uses its runtime.
#if canImport(MetalRuntime)
import MetalRuntime

enum SoftwareDevice {
    static let isPresent = true

    /// Whether the device is the software device, and not a GPU behind the same module.
    static func isPresent(as device: any MTLDevice) -> Bool { device.architecture.name.hasPrefix("applegpu") }

    /// Why there is no device: the setting `device` names one that is missing.
    static func reasonForNone() -> String {
        var message: UnsafeMutablePointer<CChar>?
        let count = mrt_gpu_count(&message)
        let setting = take(mrt_setting_get("device")) ?? ""
        return "ORCHARD_METAL_DEVICE is \"\(setting)\", but "
            + (take(message) ?? "there are \(count) usable GPUs: expected software, nvidia or nvidia:<number>") + "."
    }

    static func configure(_ name: String, _ value: String) throws {
        var message: UnsafeMutablePointer<CChar>?
        guard mrt_setting_set(name, value, &message) else {
            throw OrchardError.invalid(take(message) ?? "\(name): '\(value)' is refused.")
        }
    }

    /// Misuse that the device reports is a bug of this library: it is recorded as a finding, and the process continues.
    static func survive() { mrt_misuse_set_handler({ _, _ in }, nil) }

    /// Tells the checker that a pool's buffer is used again, for `length` bytes: accesses beyond them are findings, and
    /// its previous contents count as unwritten.
    static func reuse(_ buffer: any MTLBuffer, length: UInt64) {
        mrt_memory_reuse(UnsafeMutableRawPointer(bitPattern: UInt(buffer.gpuAddress)), Int(length))
    }

    static func settings() -> Any { json(mrt_settings_json()) }
    static func findings(clear: Bool) -> Any { json(mrt_findings_json(clear)) }
    static func dispatches(clear: Bool) -> Any { json(mrt_dispatch_counts_json(clear)) }

    /// The library that runs products on a GPU behind the same module, or why there is none; nil on other devices.
    static func productLibrary(of device: any MTLDevice) -> (isFound: Bool, text: String)? {
        guard !isPresent(as: device) else { return nil }
        var text: UnsafeMutablePointer<CChar>?
        let isFound = mrt_gpu_product_library(&text)
        return (isFound, take(text) ?? "")
    }

    /// Returns names such as `'softmax'`; empty if no kernel is running.
    static func runningKernels() -> String { take(mrt_running_kernels()) ?? "" }

    private static func json(_ text: UnsafeMutablePointer<CChar>?) -> Any {
        let data = Data((take(text) ?? "null").utf8)
        return (try? JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)) ?? NSNull()
    }

    private static func take(_ text: UnsafeMutablePointer<CChar>?) -> String? {
        defer { mrt_string_free(text) }
        return text.map { String(cString: $0) }
    }
}
#else
enum SoftwareDevice {
    static let isPresent = false

    static func isPresent(as device: any MTLDevice) -> Bool { false }
    static func reasonForNone() -> String { "This machine has no Metal device." }

    static func configure(_ name: String, _ value: String) throws {}
    static func survive() {}
    static func reuse(_ buffer: any MTLBuffer, length: UInt64) {}
    static func settings() -> Any { NSNull() }
    static func findings(clear: Bool) -> Any { NSNull() }
    static func dispatches(clear: Bool) -> Any { NSNull() }
    static func productLibrary(of device: any MTLDevice) -> (isFound: Bool, text: String)? { nil }
    static func runningKernels() -> String { "" }
}
#endif
