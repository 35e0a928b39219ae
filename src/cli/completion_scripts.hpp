// The scripts of completion/, as text in the command.
#pragma once

namespace holdfast::cli {
extern const char bash_completion[], zsh_completion[], fish_completion[];
}
