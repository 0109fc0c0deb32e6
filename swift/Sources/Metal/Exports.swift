// Apple's Metal re-exports Foundation.
@_exported import Foundation
