extension MTLResourceOptions {
    init(_ cache: MTLCPUCacheMode, _ storage: MTLStorageMode, _ tracking: MTLHazardTrackingMode) {
        self.init(rawValue: cache.rawValue | storage.rawValue << 4 | tracking.rawValue << 8)
    }

    var cpuCacheMode: MTLCPUCacheMode { MTLCPUCacheMode(rawValue: rawValue & 0xf) ?? .defaultCache }
    var storageMode: MTLStorageMode { MTLStorageMode(rawValue: rawValue >> 4 & 0xf) ?? .shared }
    var hazardTrackingMode: MTLHazardTrackingMode { MTLHazardTrackingMode(rawValue: rawValue >> 8 & 3) ?? .default }

    var parts: (MTLCPUCacheMode, MTLStorageMode, MTLHazardTrackingMode) {
        (cpuCacheMode, storageMode, hazardTrackingMode)
    }

    /// Whether only known bits are set, and each part has a known value.
    var isValid: Bool {
        rawValue & 0xf <= 1 && rawValue >> 4 & 0xf <= 3 && rawValue >> 8 & 3 <= 2 && rawValue >> 10 == 0
    }
}
