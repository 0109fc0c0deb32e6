/// A value that queues signal and wait for.
class SoftwareEvent: NSObject, MTLEvent, @unchecked Sendable {
    private let condition = NSCondition()
    private var value: UInt64 = 0
    var label: String?
    var device: (any MTLDevice)? { SoftwareDevice.shared }

    var currentValue: UInt64 { condition.withLock { value } }

    func signal(_ newValue: UInt64) {
        condition.withLock {
            value = newValue
            condition.broadcast()
        }
    }

    func wait(for target: UInt64) { condition.withLock { while value < target { condition.wait() } } }

    /// Returns false if `deadline` passed first.
    func wait(for target: UInt64, until deadline: Date) -> Bool {
        condition.withLock {
            while value < target {
                if !condition.wait(until: deadline) { return value >= target }
            }
            return true
        }
    }
}

final class SoftwareSharedEvent: SoftwareEvent, MTLSharedEvent, @unchecked Sendable {
    private struct Notification {
        let value: UInt64
        let queue: DispatchQueue
        let block: MTLSharedEventNotificationBlock
    }

    private let lock = NSLock()
    private var notifications: [Notification] = []

    var signaledValue: UInt64 {
        get { currentValue }
        set { signal(newValue) }
    }

    override func signal(_ newValue: UInt64) {
        super.signal(newValue)
        notifyReached()
    }

    func notify(
        _ listener: MTLSharedEventListener, atValue value: UInt64, block: @escaping MTLSharedEventNotificationBlock
    ) {
        lock.withLock { notifications.append(Notification(value: value, queue: listener.dispatchQueue, block: block)) }
        notifyReached()
    }

    func wait(untilSignaledValue value: UInt64, timeoutMS milliseconds: UInt64) -> Bool {
        let longest = 1e8  // seconds, three years: a date far beyond overflows the system's clock
        return wait(for: value, until: Date(timeIntervalSinceNow: min(Double(milliseconds) / 1000, longest)))
    }

    func makeSharedEventHandle() -> MTLSharedEventHandle { MTLSharedEventHandle(event: self) }

    private func notifyReached() {
        let now = currentValue
        let due = lock.withLock {
            let due = notifications.filter { $0.value <= now }
            notifications.removeAll { $0.value <= now }
            return due
        }
        for notification in due {
            notification.queue.async { [self] in notification.block(self, now) }
        }
    }
}

final class SoftwareFence: NSObject, MTLFence, @unchecked Sendable {
    var label: String?
    var device: any MTLDevice { SoftwareDevice.shared }
}
