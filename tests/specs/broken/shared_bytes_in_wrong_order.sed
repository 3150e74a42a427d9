/pipe probs /d
/pipe scores /a\  pipe probs  [PAIR] : p     softmax -> mma;
