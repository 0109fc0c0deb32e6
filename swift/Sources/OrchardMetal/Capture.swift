import COrchard
import Foundation
import Metal

/// A capture of all work of the device, as a .gputrace file for Xcode.
final class Capture {
    private let device: any MTLDevice
    private var isCapturing = false

    init(device: any MTLDevice) { self.device = device }

    func begin(path: String) throws {
        let manager = MTLCaptureManager.shared()
        guard !isCapturing else { throw OrchardError.invalid("A capture has begun already; end it first.") }
        guard manager.supportsDestination(.gpuTraceDocument) else {
            throw OrchardError(
                ORCHARD_UNSUPPORTED,
                "\(device.name) can't be captured to a .gputrace: that needs macOS, and MTL_CAPTURE_ENABLED=1 in the "
                    + "environment."
            )
        }
        let descriptor = MTLCaptureDescriptor()
        descriptor.captureObject = device
        descriptor.destination = .gpuTraceDocument
        descriptor.outputURL = URL(fileURLWithPath: path)
        do {
            try manager.startCapture(with: descriptor)
        } catch {
            throw OrchardError(ORCHARD_IO, "The capture to \(path) did not begin: \(error.reason)")
        }
        isCapturing = true
    }

    func end() throws {
        guard isCapturing else { throw OrchardError.invalid("No capture has begun.") }
        isCapturing = false
        MTLCaptureManager.shared().stopCapture()
    }
}
