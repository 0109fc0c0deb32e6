public func MTLCreateSystemDefaultDevice() -> (any MTLDevice)? { nil }

public func MTLCopyAllDevices() -> [any MTLDevice] { [] }
