import MetalRuntime

final class SoftwareSampler: NSObject, MTLSamplerState, @unchecked Sendable {
    let label: String?
    /// The state that kernels read. Its address never changes, since dispatches point to it.
    let state: UnsafeMutablePointer<MrtSampler>

    init(_ descriptor: MTLSamplerDescriptor) {
        label = descriptor.label
        state = .allocate(capacity: 1)
        let modes = [descriptor.sAddressMode, descriptor.tAddressMode, descriptor.rAddressMode]
        var settings: UInt32 = descriptor.normalizedCoordinates ? 0 : 1
        for (axis, mode) in modes.enumerated() { settings |= UInt32(mode.rawValue) << UInt32(1 + 3 * axis) }
        settings |= UInt32(descriptor.magFilter.rawValue) << 10 | UInt32(descriptor.minFilter.rawValue) << 11
        settings |= UInt32(descriptor.mipFilter.rawValue) << 12 | UInt32(descriptor.borderColor.rawValue) << 14
        settings |= descriptor.compareFunction.comparison << 16
        state.initialize(
            to: MrtSampler(settings: settings, lod_min: descriptor.lodMinClamp, lod_max: descriptor.lodMaxClamp))
        super.init()
        ResourceTable.shared.add(self, gpuResourceID)
    }

    deinit {
        ResourceTable.shared.remove(gpuResourceID)
        state.deallocate()
    }

    var device: any MTLDevice { SoftwareDevice.shared }
    var gpuResourceID: MTLResourceID { MTLResourceID(implementation: UInt64(UInt(bitPattern: state))) }
}

extension MTLCompareFunction {
    /// The number of this function in MSL's `compare_func`.
    fileprivate var comparison: UInt32 {
        switch self {
        case .never: return 0
        case .less: return 1
        case .lessEqual: return 2
        case .greater: return 3
        case .greaterEqual: return 4
        case .equal: return 5
        case .notEqual: return 6
        case .always: return 7
        }
    }
}
