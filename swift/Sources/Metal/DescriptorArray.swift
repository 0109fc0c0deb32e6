/// An array of descriptors that creates each descriptor when it is first read. Apple's descriptor arrays for rendering
/// and `stage_in` are subclasses.
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
