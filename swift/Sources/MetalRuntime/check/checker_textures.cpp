// Accesses to pixels outside a texture. On Apple's devices such reads return 0 and such writes are ignored; Metal's
// specification guarantees less.
#include "check/checker_state.h"

namespace mrt::checker {
namespace {

// "(3, 8) of a texture of 8 x 8 pixels"
std::string where(const MrtTexture &texture, const mrt_u32 *position) {
  const uint32_t level = position[4];
  std::string text = "pixel (" + std::to_string(position[0]) + ", " + std::to_string(position[1]) + ", " +
                     std::to_string(position[2]) + ")";
  if (texture.array_length > 1 || position[3]) text += " of slice " + std::to_string(position[3]);
  if (level) text += " of level " + std::to_string(level);
  if (level >= texture.level_count)
    return text + ", of a texture with " + std::to_string(texture.level_count) + " level(s)";
  const MrtLevel &image = texture.levels[level];
  text += ", of a texture of " + std::to_string(image.width) + " x " + std::to_string(image.height) + " x " +
          std::to_string(image.depth) + " pixels";
  return texture.array_length > 1 ? text + " and " + std::to_string(texture.array_length) + " slices" : text;
}

} // namespace

void Checker::texture_bounds(const MrtTexture &texture, const mrt_u32 *position, Action action, Site site, Moment now) {
  Finding &finding = found("out-of-bounds", texture.address, site, now);
  if (!finding.message.empty()) return;
  finding.object.label = texture.label ? texture.label : "";
  finding.object.identity = texture.address;
  finding.message = texture_bounds_message(finding, action, where(texture, position));
}

void texture_bounds(const MrtTexture *texture, const mrt_u32 *position, mrt_u32 write, const char *file, mrt_u32 line) {
  const MrtThread *thread = running_thread();
  Checker &checker = the_checker();
  if (!thread) return;
  checker.texture_bounds(*texture, position, write ? Action::write : Action::read,
                         checker.report.atomic_site(file, line),
                         checker.order.moment(thread->thread_index_in_threadgroup) | atomic_bit);
}

} // namespace mrt::checker
