s|mma     -> correct|mma     -> correct in place|
