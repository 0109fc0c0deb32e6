import COrchard
import Foundation
import Metal

extension Context {
    /// Returns the device's properties as described for orchard_device_info.
    func deviceInfo(probing: Bool, withLibraries: Bool) throws -> String {
        let probed: Any = probing ? try capabilities.all(on: self) : NSNull()
        let library = withLibraries ? SoftwareDevice.productLibrary(of: device) : nil
        let threads = device.maxThreadsPerThreadgroup
        return JSON.text([
            "name": device.name,
            "architecture": device.architecture.name,
            "isSoftware": SoftwareDevice.isPresent(as: device),
            "system": ProcessInfo.processInfo.operatingSystemVersionString,
            "families": Self.families.filter { $0.family.map(device.supportsFamily) ?? false }.map(\.name),
            "unifiedMemory": device.hasUnifiedMemory,
            "recommendedWorkingSet": device.recommendedMaxWorkingSetSize,
            "maxBufferLength": device.maxBufferLength,
            "maxThreadgroupMemory": device.maxThreadgroupMemoryLength,
            "maxThreadsPerThreadgroup": [threads.width, threads.height, threads.depth],
            "maxInlineBytes": Int(ORCHARD_MAX_INLINE_BYTES),
            "maxBuffers": DeviceLimits.buffers,
            "capabilities": probed,
            "productLibrary": library.map { ["supported": $0.isFound, "reason": $0.text] } ?? NSNull(),
        ])
    }

    /// Apple10 has no name before macOS 26's SDK.
    private static let families: [(name: String, family: MTLGPUFamily?)] = [
        ("apple1", .apple1), ("apple2", .apple2), ("apple3", .apple3), ("apple4", .apple4), ("apple5", .apple5),
        ("apple6", .apple6), ("apple7", .apple7), ("apple8", .apple8), ("apple9", .apple9),
        ("apple10", MTLGPUFamily(rawValue: 1010)), ("mac2", .mac2),
        ("common1", .common1), ("common2", .common2), ("common3", .common3), ("metal3", .metal3),
    ]
}
