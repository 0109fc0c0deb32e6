// Values of Dispatch that are Sendable on Apple's systems, but not yet on Linux.
import Dispatch

extension DispatchQoS: @retroactive @unchecked Sendable {}
extension DispatchQoS.QoSClass: @retroactive @unchecked Sendable {}
