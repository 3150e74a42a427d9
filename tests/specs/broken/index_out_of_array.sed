s/q_in.2./q_in[1]/
