s|^kernel windowed : attention$|& {|
