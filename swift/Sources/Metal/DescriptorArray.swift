/// An array of descriptors, which creates each one when it is first read. The arrays of Apple's descriptors that
/// rendering and `stage_in` have are subclasses.
public class _DescriptorArray<Element: NSObject & NSCopying>: NSObject {
    private var kept: [Int: Element] = [:]
    private let make: () -> Element

    init(_ make: @escaping @autoclosure () -> Element) { self.make = make }

    public subscript(index: Int) -> Element! {
        get {
            if let known = kept[index] { return known }
            let fresh = make()
            kept[index] = fresh
            return fresh
        }
        set { kept[index] = newValue?.copy() as? Element }
    }

    func take(_ other: _DescriptorArray) {
        kept = other.kept.compactMapValues { $0.copy() as? Element }
    }

    func removeAll() { kept = [:] }
}
