// unread.h: after a syntax error parts of a file are not in the tree. What they may have declared is read
// from the text, so that only names that nothing can declare are said to be unknown.
#ifndef JFA_COMPILER_UNREAD_H
#define JFA_COMPILER_UNREAD_H

#include "grammar/source.h"

// Whether any file's text has the name at `use` where a declaration could have it: behind a word of a
// declaration, before '=', ':' or 'in', or among the parameters of a '=>'. Comments are left out. May be true
// in vain.
bool unread_may_declare(const SourceSet *sources, Span use);

#endif
