s|if t.steps.count {|if t.steps.count > 0 {|
