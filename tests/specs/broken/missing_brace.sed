/free x;/{
n
a\  }
}
